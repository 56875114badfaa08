"""Plots about things: lost, broken, made, given, wished for, found."""

from __future__ import annotations

from story_scenes import finish, glad, in_season, introduce, is_animal, new_friend, new_hero, sad, start
from story_teller import Story, Thing, Who
from story_words import SNACKS, TOYS, TREASURES

# How a thing is lost -> what happened, what the hero tries, who can help and how.
LOSSES = {
    "up": {
        "event": [
            "a gust of wind [took|caught] {x.the} and carried it [to the top of a tall tree|up into an old oak]",
            "{he} threw {x.the} too high, and it [got stuck|was caught] in the branches of a tall tree",
        ],
        "try": [
            "{h} jumped as high as {he} could, but {he} could not reach it.",
            "{h} threw sticks at the branch, but they all fell down again.",
            "{h} tried to climb the tree, but the trunk was [too smooth|too thick].",
        ],
        "helper": [("bird", "{p} flew up, took {x.the} in {p.his} beak, and [brought it down|let it fall] gently")]
        + [("squirrel", "{p} ran up the trunk, quick as the wind, and pushed {x.the} from the branch")]
        + [("giraffe", "{p} stretched {p.his} long neck and picked {x.the} from the branch like a leaf")],
    },
    "water": {
        "event": [
            "{x.the} fell into the [river|stream] and [floated away|was carried off by the water]",
            "{he} slipped on the bank, and {x.the} [fell|dropped] into the pond",
        ],
        "try": [
            "{h} tried to catch it with a long stick, but it [drifted|floated] further away.",
            "{h} put one foot into the water, but it was [too cold|too deep].",
            "{h} ran along the bank, but the water was faster.",
        ],
        "helper": [
            ("duck", "{p} swam after {x.the} and pushed it back to the bank with {p.his} beak"),
            ("otter", "{p} dived in without a splash and came up with {x.the} [in {p.his} paws|on {p.his} nose]"),
            ("fish", "{p} pushed {x.the} to the bank with {p.his} nose"),
        ],
    },
    "hole": {
        "event": [
            "{x.the} rolled down the path and [fell into|vanished in] a deep, narrow hole",
            "{he} stumbled, and {x.the} [dropped|slid] into a crack between two rocks",
        ],
        "try": [
            "{h} reached into it as far as {he} could, but {his} arm was too short.",
            "{h} poked about with a stick, but it only slid deeper.",
            "{h} lay down and looked inside, but it was too dark to see.",
        ],
        "helper": [
            ("mouse", "{p} slipped inside, and soon {x.the} came out, with {p} pushing from behind"),
            ("mole", "{p} dug a little tunnel and brought {x.the} out from below"),
            ("lizard", "{p} crept in and pulled {x.the} out [step by step|by and by]"),
        ],
    },
    "thorns": {
        "event": [
            "the wind blew {x.the} into a [big bush full of thorns|thick hedge]",
            "{x.the} flew over the wall and landed [deep|right] in the thorns",
        ],
        "try": [
            "{h} pushed the branches aside, but the thorns scratched {him}.",
            "{h} pulled at the branches, but they would not let go.",
            "{h} crawled under the leaves, but {he} soon got stuck.",
        ],
        "helper": [
            ("hedgehog", "{p}, who had spines of {p.his} own, walked in and rolled {x.the} out"),
            ("goat", "{p} ate the branches one after the other until {x.the} was free"),
            ("wren", "{p} hopped between the thorns and pulled {x.the} out [by one corner|bit by bit]"),
        ],
    },
}


def lost_thing(s: Story) -> None:
    """Something dear is out of reach; somebody with the right gift helps."""
    new_hero(s)
    how = s.pick(LOSSES)
    x = s.cast["x"] = s.pick([t for t in TOYS if not (t.noun in ("balloon", "kite", "toy boat") and how == "hole")])
    helper, deed = s.pick([h for h in LOSSES[how]["helper"] if h[0] != s.cast["h"].noun])
    s.cast["p"] = Who(helper, s.pick(["she", "he"]))
    s.key += [how, helper, x.noun]
    s.title = s.render(s.pick(["The Lost {x}", "{h} and the {x}", "The {p.kind} Who Helped", "{h} Loses a {x}"]))
    introduce(s)
    s.say(
        "{He} had {x.a} that {he} [loved|liked] more than anything.",
        "{His} [favourite|dearest] thing was {x.a}.",
        "For {his} birthday, {e} had given {him} {x.a}.",
    )
    s.cast["event"] = s.pick(LOSSES[how]["event"])
    s.say(
        "One day, {h} was playing {there} when {event}.",
        "One {season} day, {h} took {x.the} [along|for a walk]. [Suddenly|All at once|All of a sudden], {event}.",
        "But one morning, {event}.",
    )
    sad(s) if s.chance(0.4) else s.say('"[Oh no|Oh dear], my {x}!" [cried|called] {h}.', '"Come back!" cried {h}.')
    s.paragraph()
    s.say(*LOSSES[how]["try"])
    s.maybe(0.4, "{He} tried again and again.", "{He} did not know what to do.", "It was no use.")
    s.say(
        'Then {p.a} came by. "Why are you so sad?" {p.he} asked. {h} told {p.him} what had happened.',
        'Just then {p.a} came along. "[Can|May] I help you?" asked {p}.',
        'At last {h} saw {p.a}. "Please, can you help me?" {he} asked.',
        'A voice behind {him} said: "Let me try." It was {p.a}.',
    )
    s.say(
        '"[Of course|Gladly|That is easy for me]," said {p}.',
        '"Wait here," said {p}.',
        '"That is not hard for someone like me," said {p}.',
        "",
    )
    s.cast["deed"] = deed
    s.say("{deed}.", "And so {deed}.", "Then {deed}.")
    s.paragraph()
    s.say(
        '"Thank you!" said {h}. ',
        '"You are wonderful! Thank you!" [cried|said] {h}.',
        "{h} thanked {p} with all {his} heart.",
    )
    s.say(
        "They shared {food} and became friends.",
        "From then on, they [played together every day|were the best of friends].",
        "{h} gave {p} half of {his} [lunch|{food}], and they played until evening.",
        "After that, {h} held {x.the} tight all the way home.",
    )
    finish(s, "help")


BROKEN = [
    ("vase", "the big blue vase", "with a crash"),
    ("cup", "the cup with the golden rim", "into three pieces"),
    ("window", "the kitchen window", "with a loud crash"),
    ("flower pot", "the pot with the red flower", "into many pieces"),
    ("bowl", "the old bowl from the shelf", "in two"),
    ("clock", "the little clock on the wall", "with a last ding"),
]


def broken_thing(s: Story) -> None:
    """Something is broken, hidden, and confessed."""
    new_hero(s)
    noun, thing, how = s.pick(BROKEN)
    s.cast.update(x=Thing(noun), thing=thing, how=how)
    s.cast["o"] = s.pick([s.cast["e"], s.cast["n"]])
    s.key += [noun, s.cast["o"].noun]
    s.title = s.render(s.pick(["The Broken {x}", "{h} Tells the Truth", "{h} and the {x}"]))
    start(
        s,
        "{h} was playing with a ball [indoors|in the house], although {e} had told {him} not to.",
        "{h} ran through the [house|kitchen] [with a stick in {his} hand|as fast as {he} could].",
        "{h} wanted to show how far {he} could throw a ball.",
    )
    s.say(
        "[Suddenly|Then] {he} [hit|knocked over] {thing}, and it broke {how}.",
        "Oh no! {thing} broke {how}.",
        "Then it happened: {he} bumped into {thing}, and it broke {how}.",
    )
    mine = s.cast["o"].owner is not None
    if not mine:
        s.say("It belonged to {n}, the {n.kind}.", "It was {n}'s, and {n} was very fond of it.")
    s.paragraph()
    s.say(
        "{h} was frightened. Quickly {he} hid the pieces [under a mat|behind the cupboard|in a box].",
        "Nobody had seen it. {h} swept up the pieces and [hid them|put them in a bag].",
        "{h} looked around, [and then {he} ran and hid in the garden|and then {he} crept away on tiptoe].",
    )
    s.say(
        "But {he} could not [play|eat|be glad] any more. {His} tummy hurt.",
        "All day {he} felt as if {he} had swallowed a stone.",
        "At dinner {e} served {food}, but {he} could not eat [one bite|a thing].",
        "In the evening {he} lay awake and thought of {thing}.",
    )
    s.maybe(
        0.5,
        '"What is wrong?" asked {e}. "Nothing," said {h}, [but {his} ears turned red|and looked at the floor].',
        '"Somebody has broken it," said {o}. "I wonder who it was." {h} said nothing.',
    )
    s.say(
        "At last {he} could bear it no longer.",
        "Then {h} took a deep breath.",
        "In the end, {h} went to {o} with [wet eyes|a beating heart].",
    )
    s.say(
        '"It was me," {he} said. "I broke it, and I am sorry."',
        '"I must tell you something," {he} whispered. "I broke {thing}."',
        '"Please do not be angry," said {h}. "It was an accident, but I should have told you at once."',
    )
    s.paragraph()
    s.say(
        '{o} was quiet for a moment. "Thank you for telling me," {o.he} said.',
        '{o} was sad about it, but {o.he} put {o.his} arm around {h}. "It was brave of you to tell me," {o.he} said.',
        '"I already knew," said {o} and smiled a little. "I was waiting for you to tell me."',
    )
    s.say(
        "Together they glued the pieces, and it looked [almost|nearly] new."
        if noun != "window"
        else "Together they put in a new pane of glass.",
        "The next day {h} helped {o} in the [garden|house|kitchen] to make up for it.",
        "{h} gave {o} all {his} savings for a new one, and {o} gave half of them back.",
    )
    s.say(
        "{h} felt as light as a feather.",
        "Now {he} could laugh again.",
        "That night {h} slept well.",
        "",
    )
    finish(s, "honesty")


# What is made, what for, what is missing, and how it is done all the same.
MAKINGS = [
    ("cake", "{e}'s birthday", "there was no [sugar|butter] left", "{he} used [honey|sweet apples] instead"),
    ("kite", "the autumn fair", "the paper tore", "{he} mended it with an old [shirt|curtain]"),
    ("raft", "a trip down the stream", "the ropes were too short", "{he} tied them together with [vines|knots]"),
    ("bird house", "the birds in winter", "the roof had a big gap", "{he} covered it with [bark|moss]"),
    ("mask", "the village feast", "the paint was all dried up", "{he} made paint from [berries|beets]"),
    ("necklace", "{e}'s birthday", "the string snapped", "{he} plaited a new one from [grass|yarn]"),
    ("lantern", "the lantern walk", "the candle was gone", "{he} filled it with [glow-worms|shining moss]"),
    ("sled", "the first snow", "one board was missing", "{he} took a [shelf|board] from the old shed"),
    ("hut", "rainy afternoons", "the walls fell down", "{he} wove new ones from [branches|reeds]"),
    ("drum", "the spring parade", "the skin had a hole", "{he} took an old [pan|bucket] instead"),
]


def making(s: Story) -> None:
    """Something is to be made; it goes wrong; an idea saves it."""
    new_hero(s)
    noun, purpose, trouble, idea = s.pick(MAKINGS)
    s.cast.update(x=Thing(noun), purpose=purpose, trouble=trouble, idea=idea)
    if noun == "sled":
        in_season(s, "winter")
    elif noun in ("raft", "hut"):
        in_season(s, "spring", "summer")
    new_friend(s)
    s.key += [noun, s.cast["f"].noun]
    s.title = s.render(s.pick(["{h} Makes a {x}", "The Best {x}", "{h} and the {x}", "A {x} for Everyone"]))
    start(
        s,
        "{h} wanted to make a(n) {x} for {purpose}.",
        "{h} had a plan: {he} would make a(n) {x} for {purpose}.",
        "{h} decided to make a(n) {x}. It was for {purpose}.",
    )
    s.say(
        "{He} [gathered|collected] everything {he} needed and [began|set to work].",
        "{He} worked all morning, humming a song.",
        '"I can do it all by myself," {he} said.',
        "{He} rolled up {his} sleeves and began.",
    )
    s.paragraph()
    s.say(
        "But [then|soon] something went wrong: {trouble}.",
        "Everything went well until {trouble}.",
        "Alas, {trouble}!",
    )
    sad(s)
    s.say(
        '{f}, {his} friend, [looked over the fence|came by]. "Do not give up," {f.he} said. "Let us think."',
        'Then {f} came along. "It is not so bad," {f.he} said. "What else [have you got|is there]?"',
        '"May I help?" asked {f}, who lived next door. "Two heads are better than one."',
    ) if s.chance(0.7) else s.say(
        "{h} was ready to give up. But then {he} looked around [once more|carefully].",
        '"Think," {h} said to {himself}. "There must be another way."',
    )
    s.say(
        "[Suddenly|Then] {h} had an idea: {idea}.",
        "So {idea}.",
        '"I know!" cried {h}. And so {idea}.',
    )
    s.paragraph()
    s.say(
        "In the evening, the {x} was ready.",
        "It took [an hour longer|the whole afternoon], but at last the {x} was done.",
        "The {x} did not look like other ones. It looked better.",
    )
    s.say(
        '"It is the most beautiful {x} I have ever seen," said {e}.',
        'Everyone wanted to know how {he} had made it. "[With a little luck|I had help]," said {h}.',
        "[Everyone|All the neighbours] came to look at it and clapped.",
    )
    glad(s)
    finish(s, "making")


# What magic it is, what is wished for, and what comes of it.
WISHES = [
    (
        "that everything {he} touched would [turn into|become] cake",
        "[His|{His}] bed was cake, {his} door was cake, and even {his} hat was cake",
        "it was sticky, and {he} could not [sleep|hug anyone]",
    ),
    (
        "to be as tall as a tree",
        "{He} grew and grew until {his} head was in the clouds",
        "{he} could not fit into {his} home, and nobody could hear {him}",
    ),
    (
        "that it would never be night again",
        "The sun stood still, and there was no evening",
        "nobody could sleep, and everyone was tired and cross",
    ),
    (
        "that the whole world would be quiet",
        "No bird sang, no bell rang, and no voice could be heard",
        "{he} could not hear {e} sing any more, and it was terribly lonely",
    ),
    (
        "to fly like a bird",
        "Two wings grew on {his} back, and up {he} went",
        "the wind blew {him} about, and {he} grew cold and tired",
    ),
    (
        "to have a mountain of toys",
        "The toys fell from the sky, more and more of them",
        "{he} could find neither {his} bed nor {his} friends behind them",
    ),
    (
        "that {he} would never have to work again",
        "Brooms swept by themselves, and spoons stirred by themselves",
        "there was nothing left to do, and the day seemed endless",
    ),
    (
        "that it would snow in the middle of summer",
        "Big white flakes fell on the roses",
        "the bees froze, the berries froze, and the birds hid in the barn",
    ),
]


def wish(s: Story) -> None:
    """A thing with magic in it grants a wish that was not thought through."""
    new_hero(s)
    index = s.rng.randrange(len(WISHES))
    s.cast["x"] = s.pick(TREASURES)
    s.cast.update(zip(("wished", "came", "but"), WISHES[index], strict=True))
    if index == 7:
        in_season(s, "summer")
    s.key += ["wish", str(index), s.cast["x"].noun]
    s.title = s.render(s.pick(["The Magic {x}", "{h}'s Wish", "The {x} and the Wish", "Be Careful, {h}"]))
    start(
        s,
        "{h} found {x.a} [in the grass|under a root|on the path].",
        "{h} was walking {there} when {he} saw {x.a} on the ground.",
        "{h} helped {w.a} across a stream. As a reward, {he} got {x.a}.",
    )
    s.say(
        'When {he} rubbed it, a tiny voice said: "You have [one wish|two wishes]."',
        'It glowed, and a voice said: "Make a wish, and it shall come true."',
        "{He} picked it up, and it began to [hum|shine]. It was magic!",
    )
    s.say(
        "{h} did not think for long. {He} wished {wished}.",
        '"That is easy," thought {h}, and {he} wished {wished}.',
        "Without [waiting|thinking], {h} wished {wished}.",
    )
    s.paragraph()
    s.cast["came"] = s.cast["came"].replace("[His|{His}]", "{His}")
    s.say("And it came true! {came}.", "At once it happened. {came}.", "There was a flash of light. {came}.")
    s.maybe(
        0.7,
        "At first {h} [laughed|was delighted].",
        '"How wonderful!" cried {h}.',
        "It was fun [for a while|at first].",
    )
    s.say("But soon {but}.", "But after a [day|while], {but}.", "Then {he} noticed something: {but}.")
    s.say(
        '"I wish everything were as it was before," {he} [sighed|whispered].',
        "{h} took {x.the} in both hands and wished with all {his} heart that all would be as before.",
        '"Please take my wish back," said {h} to {x.the}.',
    )
    s.paragraph()
    s.say(
        "{x.The} grew [warm|bright], and then all was as it had been.",
        "There was a soft sound like a bell, and everything was [as before|right again].",
        "In the blink of an eye, the magic was gone.",
    )
    s.say(
        "{h} ran home and hugged {e}.",
        "{h} threw {x.the} into the deepest part of the lake.",
        "{h} put {x.the} back [where {he} had found it|under a root] and went home.",
        "{x.The} never glowed again, and {h} was glad of it.",
    )
    finish(s, "content")


GIFTS = [
    (
        "a song",
        "{He} made a song about [the sea|the summer|their walks]",
        "Nobody had ever made a song for {o.him} before",
    ),
    ("a picture", "{He} painted {o} with [{his} best colours|berry juice]", "{o.He} hung it above the [stove|bed]"),
    ("a scarf", "{He} knitted a scarf, a little crooked at one end", "{o.He} wore it every day"),
    ("a basket of {snack}", "{He} picked {snack} until the basket was full", "{o.He} ate them with tears of joy"),
    (
        "a bunch of flowers",
        "{He} looked for the most beautiful flowers in {place}",
        "{o.He} put them in {o.his} best vase",
    ),
    ("a story", "{He} wrote down a story on seven leaves", "{o.He} read it again and again"),
    ("a wooden spoon", "{He} carved a spoon from a piece of wood", "{o.He} never used another one"),
]


def gift(s: Story) -> None:
    """No money for a present: the hero makes one."""
    new_hero(s)
    s.cast["snack"] = s.pick(SNACKS)
    index = s.rng.randrange(len(GIFTS))
    present, work, joy = GIFTS[index]
    if "flowers" in present or "snack" in present:
        in_season(s, "spring", "summer")
    s.cast["o"] = s.pick([s.cast["e"], s.cast["n"]])
    s.cast.update(present=present, work=work, joy=joy)
    s.key += ["gift", str(index), s.cast["o"].noun]
    s.title = s.render(s.pick(["The Best Present", "A Present from {h}", "{h}'s Gift", "Better Than Bought"]))
    start(
        s,
        "{h} heard that it was {o}'s birthday.",
        "{h} remembered that {o} [had a birthday|would have {o.his} birthday] the next day.",
        "{h} wanted to thank {o} for all {o.his} kindness.",
    )
    s.say(
        "{He} wanted to give {o.him} something special, but {he} had no money.",
        "{He} opened {his} money box. There was only one [small|old] coin in it.",
        "In the shop there were [golden cups|fine clocks|silk hats], but they cost far too much.",
    )
    sad(s) if s.chance(0.5) else s.say("{h} thought and thought.", "What could {he} do?")
    s.paragraph()
    s.say(
        '"What would make {o.him} happy?" {he} [wondered|asked {himself}].',
        '{w.a} sat [on a wall|by the road]. "The best presents are not bought," {w.he} said. "They are made."',
        "Then {he} had an idea.",
    )
    s.say("{work}.", "{work}. It took {him} [all day|until evening].")
    s.maybe(
        0.5,
        "It was not perfect, but there was love in every bit of it.",
        "{His} [fingers|paws] hurt, but {he} did not stop."
        if is_animal(s)
        else "{His} fingers hurt, but {he} did not stop.",
    )
    s.paragraph()
    s.say(
        "The next morning {h} [knocked at the door|stood at the door] with {present}.",
        '"This is for you," said {h}, [and {his} heart beat fast|very quietly]. It was {present}.',
        "With red cheeks {h} gave {o} {present}." if not is_animal(s) else "With shining eyes {h} gave {o} {present}.",
    )
    s.say(
        '"You made this for me?" {o.he} asked. {joy}.',
        "{o} had to sit down. {joy}.",
        '"It is the best present I have ever had," said {o}. {joy}.',
        "{o} hugged {him} for a long time. {joy}.",
    )
    finish(s, "making")


PLOTS = {
    "lost": lost_thing,
    "broken": broken_thing,
    "making": making,
    "wish": wish,
    "gift": gift,
}
