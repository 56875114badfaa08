"""Plots about days and nights: bedtime, losing the way, helping, spoiled plans, strange sounds."""

from __future__ import annotations

from story_scenes import finish, good_night, in_season, introduce, is_animal, new_friend, new_hero, start
from story_teller import Story
from story_words import GAMES, SNACKS

CURES = [
    (
        '{e} opened the window. "Listen to the [crickets|wind]," {e.he} said. "They are singing for you."',
        "{h} listened",
    ),
    (
        "{e} told {him} a story about a [star|boat] that wanted to see the world",
        "Before it came home again, {his} eyes were shut",
    ),
    ("{e} sang the old song about the moon", "At the third verse, {h} began to yawn"),
    ("{e} told {him} to count the {snack} on the tree outside", "At seventeen, {his} eyes were closed"),
    ("{e} brought warm milk with honey", "It made {him} warm from the inside, and {he} yawned"),
    ("{e} lay down beside {him} and breathed slowly", "{h} breathed along, slower and slower"),
    (
        "{e} said good night to each thing in the room: the chair, the shoes, the cup",
        "By the time the cup had its turn, {h} was asleep",
    ),
]
WAKEFUL = [
    "counted sheep, but they would not stand still",
    "lay on {his} left side, and then on {his} right side",
    "put the pillow at the other end of the bed",
    "got up and drank a glass of water",
    "tried to think of nothing, but nothing is hard to think of",
    "looked for shapes in the shadows",
    "talked to the moon, but the moon was too far away",
]


def bedtime(s: Story) -> None:
    """The hero cannot sleep."""
    new_hero(s)
    s.cast["snack"] = s.pick(["pears", "apples", "plums", "nuts"])
    index = s.rng.randrange(len(CURES))
    cure, effect = CURES[index]
    first, second = s.rng.sample(WAKEFUL, 2)
    reason = s.pick(["excited", "moon", "noise", "thoughts", "hot"])
    s.cast.update(cure=cure, effect=effect, first=first, second=second)
    s.key += [str(index), reason]
    s.title = s.render(s.pick(["{h} Cannot Sleep", "Good Night, {h}", "The Long Night", "Close Your Eyes"]))
    introduce(s)
    s.say(
        "One {season} night, {h} could not sleep.",
        "It was late, and everyone was asleep. Only {h} was wide awake.",
        "One night, {h} lay in bed with open eyes.",
    )
    if reason == "excited":
        s.cast["game"] = s.pick(["the fair", "{his} birthday", "the feast", "the journey", "the first day of school"])
        s.say(
            "{He} could think of nothing but {game}, which was the next day.",
            "The next day was {game}, and {he} was much too excited.",
        )
    elif reason == "moon":
        s.say(
            "The moon was so bright that it shone right into {his} face.",
            "The full moon looked in at the window, round and white.",
        )
    elif reason == "noise":
        s.say(
            "Something went tap, tap, tap outside. It was a branch, but {h} did not know that.",
            "The wind whistled in the [chimney|trees], and the door creaked.",
        )
    elif reason == "thoughts":
        s.say(
            "A hundred questions were running through {his} head. Why is the sky dark? Where do the birds sleep?",
            "{He} kept thinking of all the things that {he} had not done that day.",
        )
    else:
        s.say(
            "The blanket was too warm, and without it {he} was too cold.",
            "The bed was too soft, and then it was too hard.",
        )
    s.paragraph()
    s.say("{He} {first}.", "First {he} {first}.")
    s.say("Then {he} {second}.", "After that {he} {second}.")
    s.say("Nothing helped.", "It was no use at all.", "{He} was more awake than before.")
    s.say(
        "At last {he} called softly for {e}.",
        "So {he} crept out of bed and went to {e}.",
        "Then the door opened, and {e} looked in.",
    )
    s.say(
        '"I cannot sleep," said {h}. "That happens to me too," said {e}.',
        '"Still awake?" asked {e}. {h} nodded.',
        '"Is it morning yet?" asked {h}. "Not for a long time," said {e}.',
    )
    s.paragraph()
    if index == 0:
        s.say(cure)
        s.say("{h} listened. It was like a song without words.", "{h} listened until {his} eyes grew heavy.")
    else:
        s.say("{cure}. {effect}.", "So {cure}. {effect}.")
    s.say(
        "{e} pulled up the blanket and tiptoed out.",
        "{e} kissed {him} on the forehead and put out the light.",
        '"Sleep well, {h}," whispered {e}.',
        "Outside, the stars went on shining.",
    )
    s.say(
        "But {h} did not notice, for {he} was fast asleep.",
        "And {h} slept until the sun came up.",
        "{h} dreamed of {food} and of flying.",
        "And then the house was quiet.",
        "In {his} dream {he} rode on a cloud, all around the world.",
    )


def lost_way(s: Story) -> None:
    """The hero goes too far and must find the way home."""
    new_hero(s)
    in_season(s, *(["spring", "summer", "autumn"] if s.chance(0.75) else ["winter"]))
    winter = s.cast["season"] == "winter"
    lure = s.pick(["butterfly", "sound", "berries", "cloud"] if not winter else ["tracks", "sound"])
    way = s.pick(["stream", "smoke", "helper", "star", "bell", "trail"])
    s.key += [lure, way]
    s.cast["snack"] = s.pick(["berries", "mushrooms", "nuts"])
    s.title = s.render(s.pick(["{h} Gets Lost", "The Way Home", "Too Far from Home", "{h} in the Forest"]))
    introduce(s)
    s.say(
        '"Do not go beyond the [old mill|big oak|white stone]," {e} always said.',
        "{e} had told {him} not to go into the forest alone.",
        "{He} was not allowed to go further than the bridge.",
    )
    if lure == "butterfly":
        s.say(
            "One {season} day, {h} saw a blue butterfly and ran after it, further and further.",
            "One day, a butterfly sat on {his} nose and then flew off. {h} followed it, up the hill and down again.",
        )
    elif lure == "sound":
        s.say(
            "One {season} day, {h} heard beautiful music from among the trees, and {he} followed it.",
            "One day, a strange bird was singing far away. {h} wanted to see it, and {he} went on and on.",
        )
    elif lure == "berries":
        s.say(
            "One {season} day, {h} was picking {snack}. There were always more of them a little further on.",
            "One day, {h} went to look for {snack}. {He} looked only at the ground, and never back.",
        )
    elif lure == "cloud":
        s.say(
            "One {season} day, {h} followed a cloud that looked like a ship, and {he} did not look at the path.",
            "One day, {h} wanted to see where the clouds go at night, and {he} walked after them.",
        )
    else:
        s.say(
            "One {season} day, {h} saw strange tracks in the snow, and {he} followed them, over the hill and "
            "into the forest."
        )
    s.say(
        "When {he} looked up, {he} did not know where {he} was.",
        "Suddenly all the trees looked the same.",
        "Then {he} stopped. Where was the path?",
    )
    s.paragraph()
    s.say(
        "It was getting dark.",
        "The sun went down, and the shadows grew long.",
        "A cold wind came up.",
        "An owl hooted, and the leaves whispered.",
    )
    s.say(
        '"Hello!" {he} called. Only the echo answered.',
        "{h} ran this way and that way, but everything was strange.",
        "{h} sat down on a stone and tried not to cry.",
        "{h} thought of {e} and of {food}, and {his} throat was tight.",
    )
    if way == "stream":
        s.say(
            'Then {he} heard water. "The stream flows past our home," {he} thought, and {he} followed it down '
            "the valley.",
            'Then {h} remembered what {e} had once said: "Follow the water." So {he} looked for the stream and '
            "walked beside it.",
        )
    elif way == "smoke":
        s.say(
            "{h} climbed a tree and looked around. Far away, {he} saw a thin line of smoke. That was the "
            "chimney at home!",
            "From the top of a rock, {he} saw smoke above the trees. There must be a fire, and there must be people."
            if not is_animal(s)
            else "From the top of a rock, {he} saw smoke above the trees. Somebody must live there.",
        )
    elif way == "helper":
        s.say(
            'Then {w.a} landed beside {him}. "I know where you live," said {w}. "Come with me."'
            if s.cast["w"].noun in ("owl", "heron", "crow")
            else 'Then {w.a} crept out of the grass. "I know where you live," said {w}. "Come with me."'
        )
        s.say("{h} followed {w} through the dark, step by step.", "It was a long way, but {w} knew every stone.")
    elif way == "star":
        s.say(
            "Then the clouds parted, and {he} saw the bright star that always stood above {his} home. {He} "
            "walked towards it.",
            "The stars came out. {e} had once shown {him} the one that points north, and north was the way home.",
        )
    elif way == "bell":
        s.say(
            "Then {he} heard a bell, far away. It was the bell of the village! {He} walked towards the sound.",
            "Ding, dong! That was the evening bell. {h} closed {his} eyes, listened, and went where it was loudest.",
        )
    else:
        s.say(
            "Then {he} saw something on the ground. It was a crumb from {his} lunch! {He} followed the crumbs, "
            "one by one.",
            "{h} looked closely at the ground and found {his} own footprints. Slowly {he} followed them back.",
        )
    s.paragraph()
    s.say(
        "At last {he} saw a light between the trees. {He} was home!",
        "Soon {he} knew every tree and every stone again, and then {he} was home.",
        "And there, in the last light, was {e} with a lantern.",
    )
    s.say(
        "{e} took {him} in {e.his} arms and did not let go for a long time.",
        '"There you are!" cried {e}. "I was so worried."',
        '"I will not go so far again," said {h}. "Not alone, at least."',
        "{e} did not scold. {e.He} only held {him} tight.",
    )
    s.say(
        "{e} had kept some {food} for {him}, and nothing had ever tasted better.",
        "That night {his} bed seemed softer than before.",
        "",
    )
    finish(s, "home")


TROUBLES = [
    ("had hurt {n.his} back", "carried the wood in, stacked it, and lit the fire", "autumn"),
    ("had a bad cold", "cooked a pot of soup and put a warm cloth around {n.his} neck", ""),
    ("could not find {n.his} glasses", "looked under every cushion, and found them on {n}'s nose", ""),
    ("could not get out, for snow lay in front of the door", "took a shovel and cleared a path to the gate", "winter"),
    ("was too tired to water the garden", "carried water from the well, one can after another", "summer"),
    ("could not read the letter from {n.his} sister", "read it aloud three times, and wrote the answer", ""),
    ("had dropped a whole basket of apples down the hill", "ran after them and picked up every single one", "autumn"),
    ("sat in the dark, for the lamp was broken", "climbed on a chair and mended it", ""),
    ("was sad, because nobody came to visit any more", "came every Sunday and brought {food}", ""),
    ("had lost {n.his} cat", "looked in every barn and found it with five kittens", "spring"),
]


def helping(s: Story) -> None:
    """A neighbour is in need, and the hero gives up a day's plan."""
    new_hero(s)
    trouble, deed, season = s.pick(TROUBLES)
    if season:
        in_season(s, season)
    s.cast.update(trouble=trouble, deed=deed, game=s.pick(GAMES))
    new_friend(s)
    reward = s.pick(["story", "music", "food", "smile", "gift"])
    s.key += [s.cast["n"].noun, str(TROUBLES.index((trouble, deed, season))), reward]
    s.title = s.render(s.pick(["{h} Helps Out", "A Good Neighbour", "{h} and {n}", "A Day for {n}"]))
    start(
        s,
        "{h} wanted to play {game} with {f}.",
        "{h} was on the way to {f}'s house. They wanted to play {game}.",
        "{h} ran out to play with {f}.",
    )
    s.say(
        "On the way {he} passed the house of {n}, the old {n.kind}.",
        "But then {he} saw {n}, the {n.kind}, at the window.",
        "Next door lived {n}, the {n.kind}.",
    )
    s.say("{n} {trouble}.", "That day {n} {trouble}.")
    s.paragraph()
    s.say(
        "{h} stopped. {He} thought of {f}, and {he} thought of {n}.",
        "{h} wanted to go on. But something held {him} back.",
        '"Somebody should help," thought {h}. "And I am somebody."',
    )
    s.say(
        '{He} went to the door. "Can I help you?" {he} asked.',
        '{He} went in, [took off {his} coat|rolled up {his} sleeves] and said: "I will help you."',
        "{He} knocked at the door and went in.",
    )
    s.say("{h} {deed}.", "And {h} {deed}.", "So {h} {deed}.")
    s.maybe(
        0.4,
        "{h} did not complain, not even once.",
        "{f} came to look for {him}, and soon both of them were helping.",
        "{n} watched {him}, and {n.his} eyes were bright.",
    )
    s.paragraph()
    if reward == "story":
        s.say(
            '"Now I will tell you a story," said {n}. It was about the time when {n.he} had sailed around the world.',
            "{n} told {him} a story about a dragon who was afraid of mice, and they laughed until it was dark.",
        )
    elif reward == "music":
        s.say(
            "{n} took a fiddle from the wall and played. {h} had never heard anything so beautiful.",
            "{n} taught {him} an old song, and they sang it together at the window.",
        )
    elif reward == "food":
        s.say(
            "{n} set the table, and there were pancakes with jam, as many as {h} could eat.",
            "Then there was cake, and {h} was allowed to lick the bowl.",
        )
    elif reward == "smile":
        s.say(
            "{n} did not say much. But {n.his} smile was as warm as a stove.",
            '"Thank you," said {n}, and {n.he} pressed {his} hand. {h} felt ten feet tall.',
        )
    else:
        s.say(
            '{n} opened a drawer and gave {him} a little compass. "So that you always find the way to me," '
            "{n.he} said.",
            "{n} gave {him} an old book with pictures of ships. {h} has it to this day.",
        )
    s.say(
        "There would be other days to play {game}.",
        'And {f} was not cross at all. "Take me along next time," {f.he} said.',
        "After that, {h} visited {n} every week.",
        "",
    )
    finish(s, "kindness")


PLANS = [
    (
        "a picnic",
        "it began to rain",
        "They spread the blanket under the table and had the picnic there",
        ["spring", "summer"],
    ),
    (
        "a day at the lake",
        "the sky turned black and it poured",
        "They filled the big tub, and every cup became a ship",
        ["summer"],
    ),
    (
        "a snow castle",
        "the sun came out and melted the snow",
        "They made boats of bark and let them sail on the melted snow",
        ["winter"],
    ),
    (
        "flying kites",
        "there was not a breath of wind",
        "They painted the kites instead, until each of them had a face",
        ["autumn", "spring"],
    ),
    (
        "a walk to the fair",
        "the bridge was closed",
        "They made a fair of their own, with a puppet show and a hoop game",
        ["spring", "summer", "autumn"],
    ),
    (
        "a night under the stars",
        "thick clouds covered the sky",
        "They stuck paper stars to the ceiling and slept beneath them",
        ["summer", "autumn"],
    ),
    ("a football game", "the ball burst", "They raced with snails, and the slowest snail won", ["spring", "summer"]),
    (
        "skating on the pond",
        "the ice was too thin",
        "They slid down the hill on old trays, again and again",
        ["winter"],
    ),
]


def spoiled_plan(s: Story) -> None:
    """A plan is spoiled, and something better comes of it."""
    new_hero(s)
    new_friend(s)
    plan, mishap, instead, seasons = s.pick(PLANS)
    in_season(s, *seasons)
    s.cast.update(plan=plan, mishap=mishap, instead=instead, snack=s.pick(SNACKS))
    whose = s.pick(["h", "f", "e"])
    s.cast["c"] = s.cast[whose]
    s.key += [plan, whose]
    s.title = s.render(s.pick(["A Day to Remember", "A Change of Plans", "{h}'s Big Plan", "The Best Bad Day"]))
    introduce(s)
    s.say(
        "For a whole week, {h} had looked forward to {plan}.",
        "{h} and {his} friend {f}, {f.a}, had planned {plan}.",
        '"Tomorrow is the day," {h} told {his} friend {f}, {f.a}. They had planned {plan}.',
    )
    s.say(
        "{He} had packed {snack} and could hardly sleep.",
        "Everything was ready: the {snack}, the blanket, and the good mood.",
        "{He} got up before the sun.",
    )
    s.say(
        "But [just as they set out|when the day came], {mishap}.",
        "And then {mishap}.",
        "But that {season} morning, {mishap}.",
    )
    s.say(
        '"Everything is spoiled!" cried {h}.',
        "{h} pressed {his} nose against the window and sighed.",
        "{h} threw {his} hat on the floor.",
        '"Of all days!" said {h}.',
        '"What now?" asked {f}.',
    )
    s.paragraph()
    if whose == "h":
        s.say(
            "{h} sulked for a while. But sulking is dull, and then {he} had an idea.",
            "Then {h} looked around, and {his} eyes began to shine.",
        )
    elif whose == "f":
        s.say('"Wait," said {f}. "I have an idea!"', "{f} scratched {f.his} head. Then {f.he} began to grin.")
    else:
        s.say(
            '"Who says that it is spoiled?" asked {e}. "Look what we have here."',
            '{e} winked. "When one door closes, look for a window," {e.he} said.',
        )
    s.say("{instead}.", "{instead}. It was {c}'s idea.")
    s.say(
        "They ate {snack} and laughed until their sides hurt.",
        "They told each other the silliest jokes they knew.",
        "{e} joined in, and even {n}, the {n.kind}, came to see what was so funny.",
        "Soon all the neighbours wanted to join in.",
    )
    s.paragraph()
    s.say(
        '"This is better than {plan}," said {f}.',
        '"I am glad that {mishap}," said {h} in the evening.'
        if mishap.startswith(("it", "the", "there"))
        else '"What luck we had," said {h} in the evening.',
        '"Can we do it again tomorrow?" asked {f}.',
    )
    s.say(
        "{h} had to agree.",
        "And the next week, they had {plan} after all."
        if plan not in ("a walk to the fair",)
        else "And the next week, the bridge was open again.",
        "",
    )
    good_night(s)


SOUNDS = [
    ("knock, knock, knock", "a ghost with a hammer", "a woodpecker who was building a nest", "spring"),
    ("scratch, scratch", "a monster with long claws", "a {w.kind} who wanted to come in from the cold", "winter"),
    ("hoo, hoo", "a ghost", "the wind in an empty bottle", ""),
    ("drip, drip, drip", "somebody who was crying", "a hole in the roof, and {e} put a bucket under it", ""),
    ("thump, thump", "a giant", "{f}, who was dancing because {f.he} could not sleep", ""),
    ("rattle, rattle", "a skeleton", "a shutter that had come loose in the wind", "autumn"),
    ("squeak, squeak", "a bat as big as a dog", "a nest of tiny mice under the floor", ""),
    ("grr, grr", "a bear", "{e}, who was snoring", ""),
    ("tick, tick, tick", "a secret machine", "a beetle in an old clock", ""),
    ("crunch, crunch", "a dragon", "a hedgehog who was eating the fallen pears", "autumn"),
]


def strange_sound(s: Story) -> None:
    """A sound in the night has a harmless cause."""
    while True:
        s.key = s.key[:1]
        new_hero(s)
        new_friend(s)
        sound, guess, cause, season = s.pick(SOUNDS)
        if s.cast["h"].noun in guess or s.cast["h"].noun in cause or s.cast["f"].noun in guess:
            continue
        break
    if season:
        in_season(s, season)
    s.cast.update(sound=sound, guess=guess, cause=cause)
    alone = "{f}" in cause or s.chance(0.4)
    s.key += [sound, str(alone)]
    s.title = s.render(s.pick(["The Strange Sound", "What Was That?", "A Sound in the Night", "{h} and the Mystery"]))
    introduce(s)
    if alone and "{f}" in cause:
        s.say("{His} friend {f}, {f.a}, was staying for the night.", "That week {f}, {f.a}, was visiting.")
    s.say(
        "One {season} night, {h} woke up. There was a sound: {sound}.",
        "One night, when everyone was asleep, there was a sound: {sound}.",
        'In the middle of the night, {h} sat up in bed. "What was that?" It went {sound}.',
    )
    s.say(
        '"It must be {guess}!" thought {h}.',
        "{h} pulled the blanket over {his} head. Was it {guess}?",
        "{h} was sure that it was {guess}.",
    )
    if not alone:
        s.say(
            'The next day {he} told {f}, {f.a}, about it. "Tonight we will find out," said {f}.',
            '{He} woke {his} friend {f}, {f.a}. "Do you hear it too?" {he} whispered. {f} nodded.',
        )
    s.paragraph()
    s.cast["they"] = "{h}" if alone else "the two"
    s.say(
        "{they} [took a lantern|lit a candle] and crept [down the stairs|to the door].",
        "Step by step, {they} went towards the sound.",
        "On tiptoe, {they} followed the sound.",
    )
    s.say(
        "{sound}! It was coming closer.",
        "It grew louder with every step.",
        "The floor creaked, and a shadow moved on the wall.",
    )
    s.say(
        '"Who is there?" {h} called in a trembling voice.',
        "{h} counted to three and pulled open the door.",
        "{h} held up the light and looked around the corner.",
    )
    s.say(
        "And what was it? It was {cause}!",
        "But there was no monster. It was only {cause}."
        if "put a bucket" not in cause
        else "But there was no monster. It was {cause}.",
        "It was {cause}!",
    )
    s.paragraph()
    s.say(
        "{h} laughed until {he} had to sit down.",
        '"And I thought it was {guess}!" said {h}.',
        "{h} felt silly, but also very relieved.",
        "What a relief!",
    )
    s.say(
        "{He} went back to bed and slept like a stone.",
        "After that, {h} liked to hear the sound at night.",
        "At breakfast, {he} told {e} the whole story.",
        "The next night, {h} heard it again, and {he} smiled.",
    )
    finish(s, "courage") if s.chance(0.6) else None


PLOTS = {
    "bedtime": bedtime,
    "lost-way": lost_way,
    "helping": helping,
    "spoiled-plan": spoiled_plan,
    "strange-sound": strange_sound,
}
