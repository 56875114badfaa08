"""Plots about growing up: fears, skills and patience."""

from __future__ import annotations

from story_scenes import finish, glad, in_season, introduce, is_animal, new_friend, new_hero, sad, start
from story_teller import Story

# What the hero fears, when it matters, what helps, and what it is like after all.
FEARS = [
    (
        "the dark",
        "the lamp went out",
        "The dark is only the day with its eyes closed",
        "the stars were out, and they were beautiful",
        "",
    ),
    (
        "thunder",
        "a storm came up",
        "Thunder is only the clouds moving their furniture",
        "{he} counted the seconds, and it became a game",
        "",
    ),
    (
        "deep water",
        "everyone wanted to swim in the lake",
        "The water carries those who trust it",
        "the water held {him} like a big hand",
        "summer",
    ),
    (
        "the old bridge",
        "{he} had to cross the old bridge",
        "Do not look down; look at the other side",
        "it was only twenty steps long",
        "",
    ),
    (
        "dogs",
        "a big dog came to live next door",
        "Hold out your hand and let it come to you",
        "the dog licked {his} nose",
        "child",
    ),
    (
        "heights",
        "the others climbed the big oak",
        "Go up one branch at a time",
        "{he} could see all the way to the sea",
        "",
    ),
    (
        "singing in front of others",
        "{he} was to sing at the feast",
        "Sing for one friend, and forget the rest",
        "everyone clapped and wanted to hear more",
        "",
    ),
    (
        "the first day of school",
        "the first day of school came",
        "The others are just as afraid as you are",
        "{he} had made two friends by noon",
        "",
    ),
    (
        "the cellar",
        "{e} asked {him} to fetch a jar from the cellar",
        "Take a song with you and sing it loudly",
        "there was nothing there but jars and one friendly spider",
        "",
    ),
    (
        "bees",
        "{he} had to walk through the flower garden",
        "Walk slowly and let them work",
        "the bees only hummed and took no notice of {him}",
        "summer",
    ),
    (
        "the doctor",
        "{he} had to go to the doctor",
        "It is over before you can count to ten",
        "{he} got a ribbon for being so brave",
        "",
    ),
    (
        "the wind",
        "a great wind shook the house",
        "The wind only wants to play",
        "{he} made a little windmill, and it turned and turned",
        "",
    ),
]


def fear(s: Story) -> None:
    """Something frightens the hero, until it is looked at closely."""
    while True:
        s.key = s.key[:1]
        new_hero(s, without="brave")
        of, when, advice, truth, needs = s.pick(FEARS)
        if needs == "child" and is_animal(s):
            continue
        if of == "deep water" and s.cast["h"].noun in ("duck", "otter", "beaver", "frog"):
            continue
        break
    if needs == "summer":
        in_season(s, "summer")
    s.cast.update(of=of, happens=when, advice=advice, truth=truth)
    helper = s.pick(["e", "w", "f"])
    if helper == "f":
        new_friend(s)
    s.cast["c"] = s.cast[helper]
    s.key += [of, helper]
    s.title = s.render(s.pick(["{h} Is Brave", "{h} and the Big Fear", "Not Afraid Any More", "The Brave {h.kind}"]))
    introduce(s)
    s.say(
        "But {h} was afraid of {of}.",
        "There was only one thing that {he} did not like, and that was {of}.",
        "{He} told nobody that {he} was afraid of {of}.",
        "Of all things in the world, {he} feared {of} most.",
    )
    s.say(
        "One {season} day, {happens}.",
        "Then, one day, {happens}.",
        "One [evening|morning], {happens}."
        if of not in ("deep water", "heights", "bees")
        else "One morning, {happens}.",
    )
    s.say(
        "{h} wanted to run away.",
        "{h} hid under the [bed|table].",
        "{h}'s heart beat like a drum.",
        "{h} trembled from head to foot.",
        '"I cannot do it," {he} whispered.',
    )
    s.paragraph()
    if helper == "w":
        s.say(
            '{w.a} saw {him} and came closer. "What frightens you?" asked {w}.',
            'Outside sat {w.a}. "You are as white as chalk," said {w}. "What is it?"'
            if not is_animal(s)
            else 'Outside sat {w.a}. "You are trembling," said {w}. "What is it?"',
        )
    elif helper == "f":
        s.say(
            '{f}, {f.a}, sat down beside {him}. "Are you afraid?" {f.he} asked.',
            'Then {f}, {f.a}, came up to {him}. "I used to be afraid of it too," {f.he} said.',
        )
    else:
        s.say(
            '{e} [sat down beside {him}|put an arm around {him}]. "What is wrong?" asked {e}.',
            '"Come here," said {e} softly. "Tell me what it is."',
        )
    s.say(
        '{h} told the truth: "I am afraid of {of}."',
        "At first {h} did not want to say it. Then {he} told {c} everything.",
        '"It is {of}," said {h} in a small voice.',
    )
    s.say(
        '"{advice}," said {c}. "[I will stay with you|Try it once]."',
        '{c} nodded. "{advice}," {c.he} said.',
        '"Let me tell you a secret," said {c}. "{advice}."',
    )
    s.paragraph()
    s.say(
        "{h} took a deep breath, [then another|and then one step].",
        "{h} closed {his} eyes, counted to three, and opened them again.",
        "So {h} tried it, very slowly.",
        "{His} knees were still weak, but {he} [went|tried].",
    )
    s.say("And look, {truth}!", "And what do you think? {truth}.", "And then {truth}.", "To {his} surprise, {truth}.")
    s.say(
        '"[That was all|Was that all]?" {he} [said|asked] and laughed.',
        '"I did it!" cried {h}.',
        "{h} was proud of {himself}.",
        "",
    )
    s.say(
        "The next day, {he} did it again, all alone.",
        "After that, it was easier every time.",
        "{c} [smiled|winked] at {him}.",
        "",
    )
    finish(s, "courage")


SKILLS = [
    (
        "ride a bicycle",
        "fell off",
        "Look where you want to go, not at your feet",
        "rode once around the square",
        "child",
    ),
    (
        "whistle",
        "nothing but air came out",
        "Wet your lips and think of a bird",
        "whistled so well that a blackbird answered",
        "",
    ),
    (
        "skate",
        "landed on {his} bottom",
        "Bend your knees and let the ice do the work",
        "glided across the pond like a swan",
        "winter",
    ),
    (
        "juggle",
        "dropped every ball",
        "Begin with two, and do not look at your hands",
        "kept four apples in the air",
        "",
    ),
    (
        "dance",
        "stepped on everyone's toes",
        "Listen to the drum and let your feet do as they like",
        "danced at the feast until midnight",
        "",
    ),
    (
        "play the flute",
        "made it squeak like a mouse in a trap",
        "Blow as softly as if you were cooling soup",
        "played a song that made everyone quiet",
        "",
    ),
    (
        "bake bread",
        "burned it black",
        "Bread wants time, and so does the baker",
        "baked a loaf that was gold all over",
        "",
    ),
    (
        "read",
        "mixed up all the letters",
        "Take one letter after another, like stones in a stream",
        "read a whole page aloud",
        "",
    ),
    (
        "paint",
        "spilled the colours",
        "First look for a long time, then paint",
        "painted {place} so well that one could almost smell it",
        "",
    ),
    (
        "tie a knot",
        "tied {his} own fingers together",
        "Make an ear, go round it, and pull it through",
        "tied the best knot in the village",
        "",
    ),
    (
        "jump over the brook",
        "splashed into the water",
        "Run as if the brook were not there",
        "landed on the other side with dry feet",
        "summer",
    ),
    (
        "do a handstand",
        "toppled over like a tree",
        "Push the ground away from you",
        "stood on {his} hands for a whole minute",
        "",
    ),
]


def skill(s: Story) -> None:
    """The hero cannot do something yet, and keeps on trying."""
    while True:
        s.key = s.key[:1]
        new_hero(s)
        to, failed, tip, success, needs = s.pick(SKILLS)
        if needs == "child" and is_animal(s):
            continue
        if to == "jump over the brook" and s.cast["h"].noun in ("frog", "duck", "otter", "beaver"):
            continue
        break
    if needs in ("winter", "summer"):
        in_season(s, needs)
    s.cast.update(to=to, failed=failed, tip=tip, success=success)
    teacher = s.pick(["e", "w", "n", "f"])
    if teacher == "f":
        new_friend(s)
    s.cast["c"] = s.cast[teacher]
    s.key += [to, teacher]
    s.title = s.render(s.pick(["{h} Learns to {to}", "Try Again, {h}", "{h} Does Not Give Up", "A Little Every Day"]))
    start(
        s,
        "{h} saw [the others|the big ones] {to}, and {he} wanted to do it too.",
        "{h} made up {his} mind to learn to {to}.",
        "{h} wished that {he} could {to}.",
    )
    subject = "" if failed == "nothing but air came out" else "{he} "
    s.cast["result"] = subject + failed
    s.say(
        "{He} tried it at once, but {result}.",
        "{He} tried, and {result}. {He} tried again, and {result} once more.",
        "It looked so easy. But when {he} tried, {result}.",
    )
    s.say(
        "Some of the others laughed.",
        '"You will never learn it," said a(n) {w.kind} who was passing by.'
        if teacher != "w"
        else '"It is too hard for you," said somebody.',
        '"I am too silly for it," said {h}.',
        "",
    )
    sad(s) if s.chance(0.4) else s.say(
        "{h} wanted to give up.", "{h} kicked a stone and sighed.", "{h} went home without a word."
    )
    s.paragraph()
    if teacher == "w":
        s.say(
            '{w.a} had been watching. "Nobody is born with it," said {w}.',
            'Then {w.a} spoke to {him}. "I needed a whole year for it," said {w}.',
        )
    elif teacher == "n":
        s.say(
            '{n}, the {n.kind}, had seen it. "I fell a hundred times," {n.he} said.'
            if to in ("skate", "ride a bicycle")
            else '{n}, the {n.kind}, had seen it. "I was no better at first," {n.he} said.',
            'On the way {he} met {n}, the {n.kind}. "You cannot do it yet," said {n}. "Yet is a good word."',
        )
    elif teacher == "f":
        s.say(
            '{f}, {his} friend, did not laugh. "It took me a long time too," {f.he} said.',
            '"Let us practise together," said {f}, {his} friend.',
        )
    else:
        s.say(
            '"I could not do it at your age," said {e}.',
            '{e} sat down beside {him}. "You cannot do it yet," {e.he} said. "But you will."',
        )
    s.say(
        '"And one more thing," {c.he} added. "{tip}."',
        'Then {c.he} showed {him} how. "{tip}," said {c}.',
        '"Remember one thing," said {c}. "{tip}."',
    )
    s.say(
        "So {h} practised, every morning before breakfast.",
        "{h} tried it again, and again, and again.",
        "The next day {h} practised, and the day after, and the day after that.",
        "{h} practised behind the [barn|house], where nobody could see {him}.",
    )
    s.say(
        "After a week it was a little better.",
        "Each time it went a little better.",
        "It was slow, but {he} did not stop.",
        "On some days it went well, and on others it did not.",
    )
    s.paragraph()
    s.say(
        "And then, one morning, {he} {success}!",
        "At the {season} feast, {h} {success}.",
        "And at last, {he} {success}.",
        "One day it simply happened: {he} {success}.",
    )
    s.say(
        '"Look at me!" {he} called.',
        "Those who had laughed now clapped.",
        '"I knew it," said {c} [with a smile|and nodded].',
        "Everyone wanted to know how {he} did it.",
        "",
    )
    glad(s) if s.chance(0.6) else None
    finish(s, "practice")


PLANTS = [
    ("a sunflower seed", "sunflower", "taller than {he} was", "a big golden flower"),
    ("a bean", "bean", "all the way up to the roof", "a basket of beans for everyone in the village"),
    ("an apple seed", "little tree", "a hand high, with four leaves", "the first white blossom"),
    ("a pumpkin seed", "pumpkin plant", "across the whole garden", "a pumpkin as big as a wheel"),
    ("a strawberry plant", "plant", "round and green", "the sweetest strawberry in the world"),
    ("a tulip bulb", "tulip", "out of the earth, straight as a candle", "a red cup full of light"),
    ("an acorn", "little oak", "as high as {his} knee", "a crown of small green leaves"),
]


def plant(s: Story) -> None:
    """A seed takes its time."""
    new_hero(s)
    in_season(s, "spring")
    seed, noun, grew, flower = s.pick(PLANTS)
    s.cast.update(seed=seed, plant=noun, grew=grew, flower=flower)
    giver = s.cast["g"] = s.cast[s.pick(["e", "n"])]
    folly = s.pick(["dig", "water", "shout", "pull", "sing"])
    s.key += [noun, folly, giver.noun]
    s.title = s.render(s.pick(["{h} and the Seed", "Wait and See", "The Little Garden", "{h}'s Garden"]))
    start(
        s,
        "{g} gave {h} {seed}.",
        "{h} got {seed} from {g}.",
        "{h} found {seed} in {his} pocket, and {g} told {him} to plant it.",
    )
    s.say(
        '"Put it in the earth, give it water, and wait," said {g}.',
        "{h} made a hole, put it in, and covered it with earth.",
        "Together they planted it in the [garden|sun], and {h} watered it.",
    )
    s.say(
        "The next morning {h} ran out to look. There was nothing.",
        "{h} sat down beside it and watched. Nothing happened.",
        "{h} looked after an hour, and after two. Nothing could be seen.",
    )
    s.paragraph()
    if folly == "dig":
        s.say(
            '"Perhaps it has gone away," thought {h}, and {he} dug it up again. It had not grown at all.',
            "On the third day {h} dug it up to see what it was doing.",
        )
    elif folly == "water":
        s.say(
            "{h} gave it ten cans of water, until there was a lake around it.",
            "{h} watered it in the morning, at noon and at night. The earth turned to mud.",
        )
    elif folly == "shout":
        s.say('"Grow!" shouted {h}. "Grow at once!" But it did not.', '{h} stamped {his} foot and called: "Hurry up!"')
    elif folly == "pull":
        s.say(
            "When a tiny green tip came out, {h} pulled at it, to make it grow faster.",
            "At last there was something green. {h} pulled at it a little, and it nearly broke.",
        )
    else:
        s.say(
            "{h} sang every song {he} knew to it, but the earth stayed brown.",
            "{h} played the drum to wake it up. Only a worm looked out.",
        )
    s.say(
        '{g} saw it and laughed. "A seed has its own clock," {g.he} said.',
        '"You cannot hurry it," said {g}. "It is working where you do not see it."',
        '{w.a} was watching. "Wait," said {w}. "I have waited for a hundred springs."',
    )
    s.say(
        "So {h} waited. {He} read a book, {he} built a fence, and {he} counted the clouds.",
        "{h} sighed. But {he} gave it a little water each day, no more and no less.",
        "It was hard, but {h} learned to wait. {He} played, and {he} slept, and the sun did the work.",
    )
    s.paragraph()
    s.say(
        "Then, one [warm|bright] morning, a green tip [peeped|looked] out of the earth.",
        "After two weeks, something green [pushed|broke] through the earth.",
    )
    s.say("It grew day by day, {grew}.", "The {plant} grew {grew}.", "It grew and grew, {grew}.")
    s.say("And in the end, there was {flower}.", "And one day there was {flower}.")
    s.say(
        '"It was worth the wait," said {h}.',
        "{h} called {e} and all the neighbours to look.",
        "{h} danced around it.",
        '"You did it," said {g}. "We did it together," said {h}, "the sun, the rain and I."',
    )
    finish(s, "patience")


PLOTS = {"fear": fear, "skill": skill, "plant": plant}
