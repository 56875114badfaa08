"""Word lists of the story generator. All of it was written for this project; licence CC0."""

from __future__ import annotations

from story_teller import Thing

GIRLS = [
    "Mia",
    "Anna",
    "Lily",
    "Rosa",
    "Nora",
    "Ella",
    "Ivy",
    "Clara",
    "Zoe",
    "Ruby",
    "Maya",
    "Tess",
    "Olive",
    "Alma",
    "Freya",
    "Lucy",
    "Hana",
    "Dora",
    "Wren",
    "Iris",
    "Lena",
    "Juna",
    "Marta",
    "Elsa",
    "Tilda",
    "Poppy",
    "Greta",
    "Nina",
    "Amira",
    "Sana",
]
BOYS = [
    "Tom",
    "Ben",
    "Leo",
    "Max",
    "Sam",
    "Finn",
    "Oscar",
    "Noah",
    "Jack",
    "Hugo",
    "Milo",
    "Otto",
    "Theo",
    "Kai",
    "Emil",
    "Arlo",
    "Felix",
    "Luka",
    "Anton",
    "Rafi",
    "Jonas",
    "Bela",
    "Ivan",
    "Omar",
    "Peter",
    "Nils",
    "Sven",
    "Toby",
    "Karim",
    "Dan",
]
# None is the name of a thing, a plant or a food that a story may be about.
ANIMAL_NAMES = [
    "Pip",
    "Bramble",
    "Mallow",
    "Hazel",
    "Bilberry",
    "Pepper",
    "Nutmeg",
    "Tuft",
    "Truffle",
    "Rowan",
    "Fern",
    "Thistle",
    "Scamper",
    "Barnaby",
    "Dot",
    "Maple",
    "Tansy",
    "Fidget",
    "Tilly",
    "Rusty",
    "Ginger",
    "Sorrel",
    "Twig",
    "Poppet",
    "Bracken",
    "Juniper",
    "Nettle",
    "Tumble",
    "Patch",
    "Whisk",
]

# Noun, home, favourite food.
ANIMALS = [
    ("fox", "a warm den under the hill", "plum cake"),
    ("rabbit", "a burrow at the edge of the meadow", "carrot soup"),
    ("mouse", "a tiny hole behind the mill", "cheese"),
    ("hedgehog", "a heap of leaves beside the hedge", "apple pie"),
    ("squirrel", "a hollow oak tree", "nut bread"),
    ("duck", "a nest among the reeds", "oat cakes"),
    ("bear", "a cave on the mountain", "honey"),
    ("frog", "a hole under a mossy stone by the pond", "pond soup"),
    ("badger", "a tidy den in the woods", "mushroom stew"),
    ("otter", "a hut on the river bank", "river stew"),
    ("beaver", "a lodge in the middle of the stream", "willow salad"),
    ("kitten", "a basket by the kitchen stove", "warm milk"),
    ("puppy", "a kennel behind the bakery", "biscuits"),
    ("lamb", "a barn on the green hill", "clover"),
    ("mole", "a long tunnel under the garden", "root stew"),
    ("piglet", "a sty beside the orchard", "apples"),
    ("goat", "a shed on the steep hill", "barley cakes"),
    ("raccoon", "an old hollow log", "berry jam"),
]
CHILD_HOMES = [
    "a small house by the river",
    "a blue house at the end of the lane",
    "a cottage at the edge of the forest",
    "a tall house in the middle of the town",
    "a farmhouse between two hills",
    "a house by the sea",
    "a little flat above the bakery",
    "a white house on the hill",
]
CHILD_FOODS = ["pancakes", "apple pie", "tomato soup", "honey bread", "plum cake", "warm rice pudding", "noodle soup"]

# Adjective -> what such a one does.
TRAITS = {
    "curious": [
        "{He} asked a hundred questions every day.",
        "{He} liked to look under every stone and behind every door.",
        "{He} wanted to know how everything worked.",
    ],
    "cheerful": [
        "{He} sang from morning until night.",
        "{He} could find something to laugh about on the darkest day.",
        "{He} greeted everyone {he} met with a smile.",
    ],
    "shy": [
        "{He} hid behind {his} mother when visitors came.",
        "{He} spoke so softly that people had to lean close.",
        "{He} had many thoughts, but {he} kept them to {himself}.",
    ],
    "brave": [
        "{He} was the first to climb every tree.",
        "{He} was not afraid of storms or of deep water.",
        "{He} always went first when others held back.",
    ],
    "careful": [
        "{He} always looked twice before {he} jumped.",
        "{He} counted {his} things every evening and put them away.",
        "{He} never hurried, and {he} seldom made a mistake.",
    ],
    "impatient": [
        "{He} could not wait for anything.",
        "{He} ate {his} soup while it was still too hot.",
        "{He} wanted everything to happen at once.",
    ],
    "dreamy": [
        "{He} could watch the clouds for hours.",
        "{He} often forgot where {he} was going.",
        "{He} saw castles and dragons in the clouds.",
    ],
    "stubborn": [
        "When {he} had an idea, nobody could talk {him} out of it.",
        "{He} liked to do everything by {himself}.",
        "{He} said no more often than {he} said yes.",
    ],
    "gentle": [
        "{He} stepped around every snail on the path.",
        "{He} carried spiders out of the house in {his} hat.",
        "{He} never raised {his} voice.",
    ],
    "clever": [
        "{He} could solve any riddle.",
        "{He} had a new idea before breakfast every day.",
        "{He} knew the name of every plant and every star.",
    ],
    "lively": [
        "{He} ran everywhere and never walked.",
        "{He} could not sit still for a moment.",
        "{He} jumped over every puddle on the way.",
    ],
    "kind": [
        "{He} always kept a little food for the birds.",
        "{He} helped the neighbours without being asked.",
        "{He} could not see anybody sad without trying to help.",
    ],
}
SMALL = ["little", "young", "small"]

# Season -> sentences about the weather, ready to open a day.
WEATHER = {
    "spring": [
        "[The snow had melted, and|The sun was warm, and] the first flowers were out.",
        "A soft rain had fallen [in the night|before dawn], and everything smelled of earth.",
        "The birds were singing, and the trees were covered with blossoms.",
        "A warm wind blew, and small clouds raced across the sky.",
    ],
    "summer": [
        "The sun was shining, and there was not a cloud in the sky.",
        "It was so hot that even the bees were slow.",
        "The grass was high, and the air smelled of [hay|flowers|mint].",
        "The sky was blue, and a light breeze moved the leaves.",
    ],
    "autumn": [
        "The leaves were red and gold, and the air was cool.",
        "A thin mist lay over the fields.",
        "The wind was strong, and leaves danced [along the path|through the air].",
        "The sky was grey, and it smelled of smoke and apples.",
    ],
    "winter": [
        "Snow had fallen [all night|in the night], and the world was white and quiet.",
        "Ice covered the puddles, and {his} breath made little clouds.",
        "The snow sparkled in the sun.",
        "It was bitterly cold, and icicles hung from the branches.",
    ],
}
SEASON_MARKS = {
    "spring": ["one spring morning", "on the first warm day of spring", "early one spring day", "one morning in April"],
    "summer": ["one summer morning", "on a hot summer day", "one sunny afternoon", "one bright day in July"],
    "autumn": ["one autumn afternoon", "one windy autumn day", "on a cool autumn morning", "one day in October"],
    "winter": ["one winter morning", "on a cold winter day", "one snowy afternoon", "one frosty morning"],
}
# Season -> places, each with the word that says that one is there.
PLACES = {
    "any": [
        ("in", "the meadow"),
        ("in", "the forest"),
        ("in", "the old orchard"),
        ("on", "the hill"),
        ("by", "the pond"),
        ("in", "the park"),
        ("in", "the garden"),
        ("by", "the mill"),
        ("on", "the beach"),
    ],
    "winter": [
        ("in", "the white meadow"),
        ("in", "the quiet forest"),
        ("on", "the hill"),
        ("on", "the village square"),
        ("by", "the frozen pond"),
    ],
}

COLOURS = ["red", "blue", "green", "yellow", "white", "purple", "orange", "silver"]


def coloured(*nouns: str) -> list[Thing]:
    return [Thing(noun, colour) for noun in nouns for colour in COLOURS]


TOYS = coloured("kite", "ball", "scarf", "hat", "balloon", "ribbon", "toy boat", "mitten", "paper bird", "whistle")
TREASURES = [
    Thing("pebble", "shiny"),
    Thing("shell", "pink"),
    Thing("feather", "golden"),
    Thing("key", "old"),
    Thing("bell", "little"),
    Thing("coin", "bright"),
    Thing("marble", "green"),
    Thing("button", "brass"),
    Thing("ring", "silver"),
    Thing("lantern", "small"),
]
GAMES = ["hide and seek", "tag", "catch", "leapfrog", "pirates", "knights and dragons", "shop", "marbles"]
SNACKS = ["berries", "pears", "nuts", "honey cakes", "sandwiches", "cherries", "plums", "biscuits", "apples"]
HELPERS_WISE = [("owl", "old"), ("tortoise", "wise"), ("heron", "grey"), ("toad", "old"), ("crow", "clever")]
NEIGHBOURS = [
    ("Mrs Finch", "she", "baker"),
    ("Mr Reed", "he", "gardener"),
    ("Mrs Vale", "she", "weaver"),
    ("Mr Holm", "he", "carpenter"),
    ("Mrs Lark", "she", "music teacher"),
    ("Mr Stone", "he", "clockmaker"),
    ("Mrs Bell", "she", "librarian"),
    ("Mr Wick", "he", "miller"),
]
RELATIVES = [
    ("mother", "she"),
    ("father", "he"),
    ("grandmother", "she"),
    ("grandfather", "he"),
    ("aunt", "she"),
    ("uncle", "he"),
]
