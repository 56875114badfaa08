"""Plots about two or more: strangers, quarrels, sharing, contests, rescues, tricks."""

from __future__ import annotations

from story_scenes import finish, glad, in_season, introduce, is_animal, new_friend, new_hero, sad, start
from story_teller import Story, Who
from story_words import GAMES, SNACKS, TOYS


def new_neighbour(s: Story) -> None:
    """Somebody new; both are shy; a small thing breaks the ice."""
    new_hero(s)
    new_friend(s)
    s.cast["game"] = s.pick(GAMES)
    s.cast["snack"] = s.pick(SNACKS)
    s.cast["x"] = s.pick(TOYS)
    s.title = s.render(s.pick(["{h} and {f}", "The New Neighbour", "A New Friend", "{h} Finds a Friend"]))
    way = s.pick(["snack", "toy", "rain", "question", "joke"])
    s.key += [way, s.cast["f"].noun]
    introduce(s)
    s.say(
        "{h} had [a ball, a swing and a tree house|books, toys and a garden], but nobody to play with.",
        "But sometimes {h} was lonely, for there was nobody of {his} age nearby.",
        "{h} played alone most days, and {he} talked to {his} shadow.",
    )
    s.say(
        "One day, {f.a} moved in next door. {f.His} name was {f}.",
        "One {season} morning, {h} saw {f.a} sitting alone [on a wall|under a tree]. It was {f}, who was new there.",
        "Then {f.full} came to live nearby.",
    )
    s.say(
        "{h} wanted to say hello, but {he} did not know how.",
        "They looked at each other, and both looked away again.",
        "{f} hid behind a [bush|fence] and peeped out.",
        '"What if {f.he} does not like me?" thought {h}.',
    )
    s.paragraph()
    if way == "snack":
        s.say(
            "{h} had an idea. {He} [took|filled] a basket [of|with] {snack} and put it down between them.",
            "The next day, {h} brought {snack}. {He} ate one and held out another.",
        )
        s.say('"Are they for me?" asked {f}.', "{f} came one step closer, and then another.")
        s.say('"They taste better when there are two of us," said {h}.', '"Take as many as you like," said {h}.')
    elif way == "toy":
        s.say(
            "Then {h}'s {x} [fell|landed] right in front of {f}.",
            "The wind blew {h}'s {x} over the fence, straight to {f}.",
        )
        s.say(
            '{f} picked it up. "Is this yours?" {f.he} asked.',
            '"I think this belongs to you," said {f} and held it out.',
        )
        s.say(
            '"Thank you," said {h}. "Would you like to play with me?"',
            '"Yes," said {h}. "Shall we play with it together?"',
        )
    elif way == "rain":
        in_season(s, "spring", "summer", "autumn")
        s.say(
            "Suddenly it began to rain. Both of them ran under the same tree.",
            "Then there was a clap of thunder, and rain came pouring down. They both ran to the old barn.",
        )
        s.say(
            '"I do not like thunder," whispered {f}. "Neither do I," said {h}.',
            "They stood there and dripped, and then they both had to laugh.",
        )
        s.say(
            "When the sun came out, they jumped into every puddle.",
            "They told each other stories until the rain stopped.",
        )
    elif way == "question":
        s.say(
            '"What are you doing?" {h} asked at last.', 'At last {h} took heart. "What have you got there?" {he} asked.'
        )
        s.say(
            '"I am watching the ants," said {f}. "They are building a bridge. Look!"',
            '"I am drawing a map of the clouds," said {f}. "Do you want to help?"',
            '"I am listening to the grass," said {f}. "Come and lie down here."',
        )
        s.say(
            "{h} had never thought of that. It was wonderful.",
            "{h} lay down next to {f.him}, and they forgot the time.",
        )
    else:
        s.say(
            "Then {h} tripped and fell into a heap of leaves. Only {his} [nose|feet] could be seen.",
            "{h} tried to look grand, but a(n) {w.kind} landed on {his} head."
            if s.cast["w"].noun != "tortoise"
            else "{h} waved so hard that {he} fell off the fence.",
        )
        s.say("{f} laughed, and then {h} laughed too.", "{f} giggled. It was a friendly giggle.")
        s.say('"Can you do that again?" asked {f}.', '"I can show you how," said {h}.')
    s.paragraph()
    s.say(
        "They played {game} until the [sun went down|stars came out].",
        "Soon they were playing {game}, and both were laughing.",
        "All afternoon they played {game}.",
    )
    s.say(
        '"Will you come again tomorrow?" asked {h}. "Yes," said {f}. "And the day after."',
        "From that day on, they were together [every day|in sun and rain].",
        '"I was afraid that you would not like me," said {f}. "I was afraid too," said {h}.',
        "Now {h} was not lonely any more.",
    )
    finish(s, "friends")


# What two quarrel about, and how each of them is worse off alone.
QUARRELS = [
    ("who was the faster runner", "race", "It is no fun to race alone"),
    ("whose turn it was on the swing", "swing", "There was nobody to push the swing"),
    ("what colour the tree house should be", "tree house", "The door of the tree house was too heavy for one"),
    ("who should be the captain of the ship", "ship", "A ship with a captain and no crew goes nowhere"),
    ("the last piece of cake", "cake", "A dog had come and eaten the cake"),
    ("which way led to the lake", "lake", "Both got lost and had to turn around"),
    ("whose drawing was better", "drawing", "There was nobody to show a new drawing to"),
    ("who had found the big shell first", "shell", "The shell lay in the grass, and nobody looked at it"),
]


def quarrel(s: Story) -> None:
    """Two friends quarrel, are sad apart, and make peace."""
    new_hero(s)
    new_friend(s)
    about, word, alone = s.pick(QUARRELS)
    s.cast.update(about=about, alone=alone, game=s.pick(GAMES))
    end = s.pick(["storm", "sorry", "gift", "elder"])
    s.key += [word, end]
    s.title = s.render(s.pick(["The Quarrel", "{h} and {f} Make Peace", "Two Friends", "The Big Quarrel"]))
    introduce(s)
    s.say(
        "{His} best friend was {f}, {f.a}.",
        "{He} and {f}, {f.a}, did everything together.",
        "Every day {he} played {game} with {his} friend {f}, {f.a}.",
    )
    s.say(
        "But one day, they quarrelled about {about}.",
        "One {season} afternoon, they began to argue about {about}.",
        "Then, one day, they could not agree about {about}.",
    )
    s.say(
        '"You are wrong!" shouted {h}. "No, you are!" shouted {f}.',
        '"It is always about you!" cried {f}. "That is not true!" cried {h}.',
        '"I will never play with you again!" said {h}. "Good!" said {f}.',
        "They shouted until both had red faces." if not is_animal(s) else "They shouted until both were hoarse.",
    )
    s.say(
        "{h} went home one way, and {f} went home the other way.",
        "{f} stamped {f.his} foot and ran home.",
        "They turned their backs on each other and left.",
    )
    s.paragraph()
    s.say(
        "The next day was [long and grey|very quiet]. {alone}.",
        "At first {h} was glad to be alone. But soon [{he} was bored|the day felt long]. {alone}.",
        "{h} tried to play by {himself}. {alone}.",
    )
    sad(s) if s.chance(0.4) else s.say(
        "{h} missed {f}.", "{h} thought of all the good days with {f}.", "Nothing tasted good any more."
    )
    if end == "storm":
        s.say(
            "In the evening a storm came up. {h} thought of {f}, who was afraid of thunder, and {he} ran "
            "through the rain to {f.him}.",
            "Then it began to thunder. {h} knew that {f} was afraid, and {he} ran to {f.him} as fast as {he} could.",
        )
        s.say(
            '"You came!" said {f}. "Of course," said {h}. "You are my friend."',
            '{f} opened the door and pulled {him} in. "I am so glad," {f.he} said.',
        )
    elif end == "sorry":
        s.say(
            "At last {h} put on {his} hat and went to {f}. Halfway there, {he} met {f}, who was on the way to {him}.",
            "So {h} went to find {f}. But {f} was already standing at the gate.",
        )
        s.say(
            '"I am sorry," they both said at the same time, and they laughed.',
            '"I am sorry," said {h}. "I am sorry too," said {f}.',
        )
    elif end == "gift":
        s.say(
            'The next morning, {h} found a [flower|drawing|honey cake] at {his} door. There was a note: "I am '
            'sorry. {f}."',
            "{h} put {his} best [marble|feather|apple] at {f}'s door and ran away. But {f} had seen {him}.",
        )
        s.say("{h} ran out and hugged {f}.", '"Let us not fight any more," said {f}.')
    else:
        s.say(
            '"What is the matter?" asked {e}. {h} told {e.him} everything. "Is it so important who is right?" '
            "asked {e}.",
            '{w.a} had seen it all. "Two friends are like two wings," said {w}. "One alone cannot fly."',
        )
        s.say(
            "{h} thought about it. Then {he} went to {f} and held out {his} {hand}.",
            'So {h} ran to {f}. "You matter more to me than that," {he} said.',
        )
    s.paragraph()
    s.say(
        "They played {game} until it was dark.",
        "From then on, they took turns.",
        "And neither of them could remember why they had been so angry.",
        "They still argue now and then, but never for long.",
    )
    finish(s, "friends")


def sharing(s: Story) -> None:
    """The hero keeps a good thing for himself and finds out that this is dull."""
    new_hero(s)
    new_friend(s)
    food = s.chance(0.5)
    s.cast["x"] = s.pick([t for t in TOYS if t.noun in ("kite", "ball", "toy boat", "whistle", "balloon")])
    s.cast["snack"] = s.pick(SNACKS)
    s.key += [s.cast["snack"] if food else s.cast["x"].noun, s.cast["f"].noun]
    s.title = s.render(s.pick(["{h} Learns to Share", "All Mine", "Enough for Two", "{h} and {f}"]))
    if food:
        start(
            s,
            "{h} found a bush full of {snack}."
            if s.cast["snack"] in ("berries", "cherries")
            else "{h} got a big basket of {snack} from {e}.",
            "{e} gave {h} a whole bag of {snack}.",
        )
        s.say(
            '"They are all mine," said {h}, and {he} hid them [in a hollow tree|under {his} bed].',
            '"I will not give any away," thought {h}.',
        )
        s.say(
            '{f}, {f.a}, came by. "May I have some?" {f.he} asked. "No," said {h}. "They are mine."',
            'Soon {f}, {f.a}, came along. "They look good," {f.he} said. But {h} turned {his} back.',
        )
        s.paragraph()
        s.say(
            "{h} ate and ate until {his} tummy hurt. And still the bag was half full.",
            "{h} ate alone. Strangely, the {snack} did not taste as good as {he} had thought.",
            "{h} sat in the dark and ate, but {he} had nobody to talk to.",
        )
        s.say(
            "Outside, the others were [laughing|singing]. {h} looked out. {f} was sharing a small piece of "
            "bread with everyone.",
            "Through the window {he} saw {f} giving half of {f.his} only apple to [a bird|a hungry snail].",
        )
        s.say(
            "{h} felt ashamed.",
            "{h} looked at the {snack}, and they seemed [like stones|dull].",
            '"I have so much," thought {h}, "and I am not happy."',
        )
        s.paragraph()
        s.say(
            '{h} took the {snack} and ran out. "There is enough for all of us," {he} said.',
            'So {h} went to {f}. "I am sorry," {he} said. "Please take some."',
        )
        s.say(
            "They sat in the grass and ate together.",
            "Everyone had some, and the bag was soon empty.",
            "{f} made tea, and they had a feast.",
        )
        s.say("Never had {snack} tasted so good.", "And this time, they were delicious.", "")
    else:
        start(
            s,
            "{h} got {x.a} from {e}.",
            "{h} came out to play with {his} new {x}.",
        )
        s.say(
            '{f}, {f.a}, came running. "May I try it?" {f.he} asked. "No," said {h}. "It is mine."',
            '"What a beautiful {x}!" said {f}, {f.a}. "May I hold it?" But {h} shook {his} head.',
        )
        s.say(
            "{f} went away with {f.his} head down.",
            "{f} said nothing and walked away.",
            '"All right," said {f} quietly.',
        )
        s.paragraph()
        s.say(
            "{h} played with {x.the} alone. After a while it was [rather dull|not much fun any more].",
            "There was nobody to see how well {h} played, and nobody to laugh with.",
        )
        s.say(
            "From behind the hedge came laughter. {f} and the others had made a game out of [sticks and "
            "stones|an old box].",
            "{h} heard {f} and the others laugh. They had only an old [bucket|sack], but they had a lot of fun.",
        )
        s.say(
            '"A(n) {x} alone is only a(n) {x}," thought {h}.',
            "{h} looked at {x.the} and sighed.",
            "{h} wished that {he} had not said no.",
        )
        s.paragraph()
        s.say(
            '{h} went over. "Would you like a turn?" {he} asked.',
            '{h} held out {x.the} to {f}. "You go first," {he} said.',
        )
        s.say(
            '"Really?" asked {f}, and {f.his} eyes shone.',
            "{f} beamed. Soon they were all playing together.",
            "{f} showed {him} a trick with it that {h} had never thought of.",
        )
    glad(s)
    finish(s, "sharing")


CONTESTS = [
    ("the great race", "run", "ran", "twisted {v.his} foot", "in front"),
    ("the boat race", "row", "rowed", "hit a rock, and {v.his} boat filled with water", "far ahead"),
    ("the swimming race", "swim", "swam", "got tangled in the water weeds", "in front"),
    ("the sled race", "slide", "slid", "fell into a deep drift", "far ahead"),
    ("the climbing contest", "climb", "climbed", "slipped and hung from a branch by one {hand}", "nearly at the top"),
    ("the cart race", "drive", "rolled", "lost a wheel and landed in the ditch", "in the lead"),
]


def contest(s: Story) -> None:
    """A boaster gets into trouble; the hero gives up the prize to help."""
    new_hero(s)
    new_friend(s, "v", adjective=s.pick(["proud", "boastful", "vain"]))
    name, verb, moved, trouble, where = s.pick(CONTESTS)
    if verb == "slide":
        in_season(s, "winter")
    elif verb in ("row", "swim"):
        in_season(s, "summer")
    s.cast.update(name=name, verb=verb, moved=moved, trouble=trouble, where=where)
    s.cast["prize"] = s.pick(["a golden cup", "a big pie", "a crown of flowers", "a silver bell", "a jar of honey"])
    s.key += [verb, s.cast["v"].noun]
    s.title = s.render(s.pick(["{name}", "{h} and {v}", "The Prize", "Who Won?"]))
    introduce(s)
    s.say(
        "One {season} day, {name} was held, and {h} wanted to take part.",
        "Every {season}, there was {name}. The prize was {prize}.",
        "Everyone was talking about {name}. The winner would get {prize}.",
    )
    s.say(
        '{v}, {v.a}, laughed. "I shall win," {v.he} said. "Nobody can {verb} like me."',
        '"You can go home at once," said {v}, {v.a}, to the others. "I am the best."',
        '{v}, {v.a}, had won three times. "You are much too slow," {v.he} said to {h}.',
    )
    s.say("{h} said nothing.", '"We shall see," said {h}.', '"I will do my best," said {h}.')
    s.paragraph()
    s.say(
        '"Ready, steady, go!" [called|cried] {n}.',
        "{n} waved a flag, and off they went.",
        "A whistle blew, and it began.",
    )
    s.say(
        "{v} was soon {where}. {h} {moved} as fast as {he} could.",
        "They {moved} side by side, and then {v} was {where}.",
    )
    s.say("But then {v} {trouble}.", "Suddenly there was a cry: {v} had looked back to laugh, and {v.he} {trouble}.")
    s.say(
        "{h} could see the finish. {He} could win now! But {he} stopped.",
        "All the others went past. {h} looked at the finish, and then at {v}.",
        '"Help!" cried {v}. {h} did not think twice.',
    )
    s.say('"Take my {hand}," {he} said.', '"Hold on, I am coming!" {he} called.', "{He} turned around and went back.")
    s.say(
        "It took all {his} strength, but {he} got {v} out of trouble.",
        "{h} helped {v} up and stayed with {v.him}.",
        "Bit by bit, {he} pulled {v} to safety.",
    )
    s.paragraph()
    s.say(
        "They came in last, arm in arm, and everyone clapped.",
        "Someone else had won, but the loudest cheers were for {h}.",
        "When they came to the finish, the others had long been there.",
    )
    s.say(
        '"You could have won," said {v}. "Why did you help me?" "Because you needed help," said {h}.',
        '{v} hung {v.his} head. "I was unkind to you, and you were kind to me," {v.he} said. "I am sorry."',
        '"Thank you," said {v}, and {v.he} never boasted again.',
    )
    s.say(
        "The winner came and shared {prize} with them.",
        "{n} gave {h} a ribbon for the kindest heart.",
        "From then on, {h} and {v} trained together.",
        "",
    )
    finish(s, "kindness")


# Who is in need, of what, what the hero does, what trouble the hero is in later, and how the other helps.
RESCUES = [
    (
        "bee",
        "had fallen into a puddle",
        "held out a leaf and let it climb on",
        "a big dog was chasing {h}",
        "stung the dog on the nose, and it ran away",
    ),
    (
        "bird",
        "was caught in a net",
        "bit through the strings one by one",
        "{h} lost {his} way in the fog",
        "flew ahead and showed {him} the path",
    ),
    (
        "beetle",
        "lay on its back and could not get up",
        "turned it over with great care",
        "{h} was out too late, and it grew dark",
        "lit the way home with its shining back",
    ),
    (
        "fish",
        "lay in a pool that was drying up",
        "carried it back to the river in {his} hat",
        "{h} was in a boat and lost the oars",
        "pushed the boat to the bank",
    ),
    (
        "spider",
        "was shut up in a jar",
        "tipped the jar over and let it go",
        "{h} fell into a deep hole",
        "spun a thread by which {h} could climb out",
    ),
    (
        "firefly",
        "was caught in a web",
        "blew the web away",
        "{h} could not find the path in the night",
        "called all its friends, and they lit up the whole forest",
    ),
    (
        "swan",
        "was frozen to the ice",
        "melted the ice with warm water",
        "{h} had to cross the lake, but the bridge was broken",
        "carried {him} to the other side",
    ),
    (
        "horse",
        "had a thorn in its foot",
        "pulled out the thorn",
        "{h} hurt {his} leg far from home",
        "brought {him} home on its back",
    ),
    (
        "ant",
        "was drowning in a drop of rain",
        "picked it up on a blade of grass",
        "{h} dropped a bag of seeds in the grass",
        "came with all its sisters and picked up every seed",
    ),
    (
        "snail",
        "sat in the middle of the road, where the carts go",
        "carried it to the other side",
        "{h} lost a key in a crack in the wall",
        "crawled into the crack and brought out the key",
    ),
]


def rescue(s: Story) -> None:
    """A small kindness comes back when it is needed."""
    new_hero(s)
    noun, plight, deed, danger, returned = s.pick(RESCUES)
    in_season(s, *(["winter"] if noun == "swan" else ["spring", "summer", "autumn"]))
    s.cast["p"] = Who(
        noun, "it", adjective=s.pick(["young", "poor"] if noun in ("swan", "horse") else ["little", "tiny"])
    )
    s.cast.update(plight=plight, deed=deed, danger=danger, returned=returned)
    s.key.append(noun)
    s.title = s.render(s.pick(["{h} and the {p.kind}", "A Small Kindness", "The {p.kind}'s Thanks", "A Good Deed"]))
    start(
        s,
        "{h} was on the way [home|to {place}] when {he} heard a faint cry.",
        "{h} was walking [along the path|through the grass], humming a tune.",
        "{h} went out to look for [pebbles|firewood|adventure].",
    )
    s.say(
        "There was {p.a} that {plight}.",
        "Then {he} saw {p.a} that {plight}.",
        "{He} looked around and found {p.a} that {plight}.",
    )
    s.say(
        '"Please help me!" said {p} in a small voice.',
        '"Do not be afraid," said {h}. "I will help you."',
        '"You poor thing," said {h}.',
        "Others had walked by, but {h} stopped.",
    )
    s.say("Gently, {h} {deed}.", "{h} knelt down. {He} {deed}.", "Carefully {h} {deed}.")
    s.say(
        '"Thank you," said {p}. "I will not forget it."',
        '"One day I shall help you too," said {p}.',
        "{p} looked at {him} for a moment, and then it was gone.",
    )
    s.maybe(0.5, "{h} smiled. How could a(n) {p.kind} help {him}?", '"Do not mention it," said {h} and went on.')
    s.paragraph()
    s.say(
        "Many days passed. Then, one evening, {danger}.",
        "[Weeks|A month] went by, and {h} forgot all about it. But one day, {danger}.",
        "Not long after that, {danger}.",
        "Then came a day when {h} needed help {himself}: {danger}.",
    )
    s.say(
        '"Help!" [cried|called] {h}, but nobody was near.',
        "{h} did not know what to do.",
        "What should {he} do now?",
        "",
    )
    s.say(
        "All at once {p} was there. It {returned}.",
        "And who came? It was {p}! It {returned}.",
        "Then {he} heard a small voice that {he} knew. {p} {returned}.",
    )
    s.paragraph()
    s.say(
        '"You saved me," said {h}. "You helped me first," said {p}.',
        '"Now we are even," said {p}. "No," said {h}. "Now we are friends."',
        '"How can I thank you?" asked {h}. "You already have," said {p}.',
    )
    finish(s, "small")


TRICKS = [
    (
        "wolf",
        "I am going to eat you",
        "I am so thin. Wait until I have eaten the {food} at home, and I will be fatter",
        "waited at the gate until it was dark, and nobody came",
    ),
    (
        "fox",
        "give me your basket",
        "there is an even bigger basket at the bottom of the well. Can you see it",
        "leaned over to look at his own face in the water, and fell in",
    ),
    (
        "wolf",
        "nobody crosses my bridge",
        "there is a sheep behind you. It is much fatter than I am",
        "turned around to look, and {h} ran across the bridge",
    ),
    (
        "lion",
        "I am the king, and you must obey me",
        "another king lives in the lake, and he makes faces at you",
        "roared at his reflection and jumped into the water",
    ),
    (
        "crow",
        "this cheese is mine now",
        "they say you have the most beautiful voice. Will you sing for me",
        "opened his beak to sing, and the cheese fell out",
    ),
    (
        "snake",
        "look into my eyes",
        "first you must show me how long you are. Lie down around this tree",
        "wound himself around the tree so tightly that he made a knot",
    ),
    (
        "giant",
        "I will squash you like a bug",
        "I bet you cannot squeeze water out of a stone. I can",
        "did not see that the stone was a piece of fresh cheese, and ran away in fear",
    ),
    (
        "troll",
        "you shall be my servant for ever",
        "I will serve you if you can count the drops in the stream",
        "began to count, and he is still counting today",
    ),
]


def trick(s: Story) -> None:
    """Somebody big and greedy is outwitted."""
    new_hero(s)
    index = s.rng.randrange(len(TRICKS))
    noun, threat, answer, outcome = TRICKS[index]
    hero = s.cast["h"].noun
    if hero == noun or (hero in ("bear",) and noun in ("wolf", "fox")):
        index, (noun, threat, answer, outcome) = 7, TRICKS[7]
    s.cast["v"] = Who(noun, "he", adjective=s.pick(["big", "hungry", "greedy", "grim"]))
    s.cast.update(threat=threat, answer=answer, outcome=outcome)
    s.key += ["trick", str(index)]
    s.title = s.render(
        s.pick(["{h} and the {v.kind}", "The Greedy {v.kind}", "Clever {h}", "How {h} Tricked the {v.kind}"])
    )
    start(
        s,
        "{h} was walking {there} with a basket [of {food}|on {his} arm].",
        "{h} was on the way to {his} grandmother.",
        "{h} had to cross the dark forest all alone.",
    )
    if noun == "crow":
        s.say("{He} put down {his} lunch, a big piece of cheese. {v.a} took it and flew up into a tree.")
    else:
        s.say(
            "Suddenly {v.a} [jumped out from behind a rock|stood in {his} way].",
            "All at once, {v.a} blocked the path.",
            "Then {he} met {v.a}.",
        )
    s.say('"[Ha|Stop]!" said {v.the}. "{threat}!"', '"{threat}!" said {v.the} [in a deep voice|and showed his teeth].')
    s.paragraph()
    s.say(
        "{h}'s heart was beating fast, but {he} did not show it.",
        "{h} was afraid, but {he} kept {his} head.",
        "{h} thought quickly.",
        "{His} knees shook, but {his} mind was clear.",
    )
    mark = "?" if answer.endswith(("Can you see it", "sing for me")) else "."
    s.cast["mark"] = mark
    s.say('"Dear {v.kind}," {he} said. "{answer}{mark}"', '"Listen," said {h}. "{answer}{mark}"')
    s.say(
        "{v.The} was as [vain|greedy] as he was big.",
        '"Is that so?" said {v.the}.',
        "{v.The} thought about it for a while.",
    )
    s.say("So he {outcome}.", "And {v.the} {outcome}.", "{v.The} {outcome}.")
    s.paragraph()
    s.say(
        "{h} ran home as fast as {he} could.",
        '{h} laughed. "Good day to you," {he} called and went on {his} way.',
        "By then {h} was far away.",
        "{v.The} was never seen there again.",
    )
    s.say(
        '"How did you do that?" asked {e}. "I used my head," said {h}.',
        "When {he} told {e} about it, {e.he} laughed until {e.he} cried.",
        "",
    )
    finish(s, "wit")


PLOTS = {
    "neighbour": new_neighbour,
    "quarrel": quarrel,
    "sharing": sharing,
    "contest": contest,
    "rescue": rescue,
    "trick": trick,
}
