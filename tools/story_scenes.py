"""How stories begin and end: heroes, homes, days, and last sentences. The middle is in the story_plots_* files."""

from __future__ import annotations

from story_teller import Story, Who
from story_words import (
    ANIMAL_NAMES,
    ANIMALS,
    BOYS,
    CHILD_FOODS,
    CHILD_HOMES,
    GIRLS,
    HELPERS_WISE,
    NEIGHBOURS,
    PLACES,
    RELATIVES,
    SEASON_MARKS,
    SMALL,
    TRAITS,
    WEATHER,
)

HANDS = {"duck": "wing", "goat": "hoof", "lamb": "hoof", "piglet": "hoof", "girl": "hand", "boy": "hand"}


def new_hero(s: Story, *, without: str = "") -> None:
    """Casts {h}, {home}, {food}, {hand} and {trait}, and who may be around: {e} a relative, {w} someone wise, {n} a
    neighbour. without: a trait that the plot has no use for."""
    animal = s.chance(0.6)
    gender = s.pick(["she", "he"])
    trait = s.pick([trait for trait in TRAITS if trait != without])
    adjective = trait if s.chance(0.6) else s.pick(SMALL)
    if animal:
        noun, home, food = s.pick(ANIMALS)
        hero = Who(noun, gender, s.pick(ANIMAL_NAMES), adjective)
    else:
        noun = "girl" if gender == "she" else "boy"
        home, food = s.pick(CHILD_HOMES), s.pick(CHILD_FOODS)
        hero = Who(noun, gender, s.pick(GIRLS if gender == "she" else BOYS), adjective)
    relative, relative_gender = s.pick(RELATIVES)
    wise, age = s.pick(HELPERS_WISE)
    neighbour, neighbour_gender, trade = s.pick(NEIGHBOURS)
    s.cast.update(
        h=hero,
        e=Who(relative, relative_gender, owner=hero),
        w=Who(wise, s.pick(["she", "he"]), adjective=age),
        n=Who(trade, neighbour_gender, neighbour),
        home=home,
        food=food,
        hand=HANDS.get(noun, "paw"),
        trait=trait,
    )
    s.cast["season"] = s.pick(WEATHER)
    in_season(s, s.cast["season"])
    s.key.append(noun)


def is_animal(s: Story) -> bool:
    return s.cast["h"].noun not in ("girl", "boy")


def new_friend(s: Story, name: str = "f", *, other_gender: bool = True, adjective: str = "") -> Who:
    """Casts a second one of the hero's kind of world, as a rule of the other gender so that pronouns are clear."""
    hero = s.cast["h"]
    gender = {"she": "he", "he": "she"}[hero.gender] if other_gender else s.pick(["she", "he"])
    taken = {member.name for member in s.cast.values() if isinstance(member, Who)}
    if is_animal(s):
        noun = s.pick([animal[0] for animal in ANIMALS if animal[0] != hero.noun])
        names = ANIMAL_NAMES
    else:
        noun = "girl" if gender == "she" else "boy"
        names = GIRLS if gender == "she" else BOYS
    friend = Who(noun, gender, s.pick([n for n in names if n not in taken]), adjective or s.pick(SMALL))
    s.cast[name] = friend
    return friend


def in_season(s: Story, *seasons: str) -> None:
    """Moves the story to one of these seasons."""
    if s.cast["season"] not in seasons:
        s.cast["season"] = s.pick(seasons)
    preposition, s.cast["place"] = s.pick(PLACES["winter" if s.cast["season"] == "winter" else "any"])
    s.cast["there"] = f"{preposition} {s.cast['place']}"


def introduce(s: Story) -> None:
    """The first sentences: who there was, where, and of what kind."""
    s.say(
        "[Once upon a time|Once|Long ago], there was {h.full}.",
        "[Once upon a time|Once], {h.full} lived in {home}.",
        "{h} was {h.a} who lived in {home}.",
        "In {home} [there lived|lived] {h.full}.",
        "There was once {h.a} [called|whose name was] {h}.",
        "{h} was {h.a}.",
        "Far away, behind [seven|three|many] hills, there lived {h.full}.",
        "[Once upon a time|Once] there was {h.a}. {His} name was {h}.",
        "This is the story of {h.full}.",
    )
    if s.chance(0.65):
        s.say(*TRAITS[s.cast["trait"]])
    elif s.chance(0.4):
        s.say(
            "[Everyone|Everybody] knew {him} and liked {him}.",
            "{He} lived with {e}.",
            "There was nothing {he} liked better than {food}.",
            "More than anything, {he} loved {food} and long walks.",
        )


def begin_day(s: Story, *happenings: str) -> None:
    """One day, with or without its weather. happenings: templates of what happened first, without a capital letter."""
    s.cast["when"] = s.pick(SEASON_MARKS[s.cast["season"]])
    s.cast["weather"] = s.pick(WEATHER[s.cast["season"]])
    s.cast["first"] = s.pick(happenings)
    s.say(
        "[One day|One morning|One afternoon], {first}",
        "{when}, {first}",
        "{when}, {first} {weather}",
        "It was a [fine|quiet|beautiful] {season} day. {weather} {first}",
        "[One day|One morning] [in|in early|in late] {season}, {first}",
        "{weather} [That day|That morning|On this day], {first}",
    )


def start(s: Story, *happenings: str) -> None:
    """A whole beginning, in one of several orders."""
    introduce(s)
    begin_day(s, *happenings)


MORALS = {
    "help": [
        "a small friend can be a great help",
        "it is good to ask for help",
        "two can do what one cannot",
        "nobody has to do everything alone",
    ],
    "kindness": [
        "a kind deed is never lost",
        "kindness comes back when you need it",
        "it costs little to be kind",
    ],
    "small": [
        "a kind deed is never lost",
        "even the smallest creature can be a good friend",
        "kindness comes back when you need it",
    ],
    "honesty": [
        "the truth is lighter to carry than a lie",
        "it is best to tell the truth at once",
        "an honest word makes the heart light",
    ],
    "sharing": [
        "a joy that is shared is twice as big",
        "things are more fun when they are shared",
        "sharing makes a small thing large",
    ],
    "courage": [
        "being brave means being afraid and trying all the same",
        "most things look smaller when you walk up to them",
        "fear grows in the dark and shrinks in the light",
        "the first step is the hardest",
    ],
    "patience": [
        "good things take time",
        "some things cannot be hurried",
        "waiting is easier when you look closely",
    ],
    "practice": [
        "nobody can do everything at once",
        "falling down is a part of learning",
        "a little every day becomes a lot",
        "those who keep trying get there in the end",
    ],
    "friends": [
        "a friend is worth more than being right",
        "a friend can be found where you do not look for one",
        "one kind word can open a door",
    ],
    "home": [
        "it is good to wander and even better to come home",
        "home is where somebody waits for you",
        "the nicest path is the one that leads home",
    ],
    "content": [
        "what you have is often better than what you wish for",
        "not every wish makes you happy",
        "the best things cannot be wished for; they must be made",
    ],
    "wit": [
        "a good idea is stronger than big teeth",
        "those who want everything often end with nothing",
        "it is wise to think before you trust a sweet voice",
    ],
    "making": [
        "a thing that you make yourself is the best of all",
        "what is made with love is always beautiful",
        "a mistake can be the start of something new",
    ],
}


def moral(s: Story, theme: str) -> None:
    """What somebody learned: thought, said by somebody, or told by the teller."""
    s.cast["moral"] = s.pick(MORALS[theme])
    s.say(
        "{h} [had learned|now knew|understood] that {moral}.",
        "[From that day on|From then on|After that], {h} knew that {moral}.",
        'That evening, {e} [smiled and said|said]: "You see, {moral}."',
        "{h} never forgot that {moral}.",
        '"{moral}," thought {h}[.| with a smile.]',
        "So {h} found out that {moral}.",
    )


def good_night(s: Story) -> None:
    """A last picture."""
    s.say(
        "That night, {h} slept [deeply|well] and dreamed of [stars|a golden meadow|the sea|{food}].",
        "When the stars came out, {h} was [already|fast] asleep.",
        "And if [you walk by|you pass by] [one day|some day], you may hear {him} laughing.",
        "In the evening {e} served {food}, and everyone [had|took] a second helping.",
        "{h} walked home under the first stars, [tired|sleepy] and happy.",
        "And they all lived happily.",
        "{h} told {e} all about it, from the beginning to the end.",
        "{h} was [happy|glad|content], and so was {e}.",
        "{h} smiled for the rest of the day.",
        "And [whenever|each time] {h} thought of it later, {he} had to smile.",
        "The moon shone through the window, and {h} smiled in {his} sleep.",
    )


def finish(s: Story, theme: str) -> None:
    """Moral and last picture, either of which may be left out; the story does not end on nothing but a moral's lack."""
    if s.chance(0.5):
        moral(s, theme)
        if s.chance(0.5):
            good_night(s)
    else:
        good_night(s)
        if s.chance(0.4):
            moral(s, theme)


def sad(s: Story, who: str = "h") -> None:
    """How somebody shows that {who} is sad."""
    s.cast["sad"] = s.cast[who]
    s.say(
        "{sad} was very sad.",
        "{sad} sat down and [cried|wept].",
        "[Tears ran|A tear ran] down {sad.his} [cheeks|face].",
        "{sad} felt a lump in {sad.his} throat.",
        "{sad} hung {sad.his} head.",
        '"Oh no!" cried {sad}. "What shall I do [now|]?"',
    )


def glad(s: Story) -> None:
    """How the hero shows joy."""
    s.say(
        "{h} [jumped|danced] for joy.",
        "{h} laughed [out loud|with joy].",
        '"Hooray!" [cried|shouted] {h}.',
        "{h} was so happy that {he} [sang all the way home|could not stop smiling|turned three somersaults].",
        "{h} felt warm [all over|inside].",
        "{h} smiled from ear to ear.",
    )
