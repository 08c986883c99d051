"""Queries that most corpora cannot answer: questions about many subjects, in other languages, and random words.

They were written for this purpose. It does no harm if a corpus answers a few of them: the calibration leaves out the
few with the most evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_QUESTIONS = """
how long should a sourdough loaf rest before it is baked
which vaccinations does a kitten need in its first year
what is the best fertiliser for tomatoes on a balcony
how do I remove red wine stains from a wool carpet
when does the ferry to the island leave on sundays
how many players are on the field in water polo
what should I wear to an interview at a bank
how can I tell whether a used bicycle was stolen
which chess opening is recommended for beginners
how do I tune a ukulele without a tuner
what causes the white spots on my fingernails
is it safe to eat mussels in a month without an r
how much does it cost to replace a windscreen
what is the difference between baroque and rococo furniture
how do beavers survive the winter under the ice
which knots do I need to know to sail a dinghy
why do cats knead blankets before they sleep
how is the winner of a figure skating competition decided
can I claim the cost of a home office against tax
what does a blinking oil lamp on the dashboard mean
how do I teach a child to swim
which wine goes with grilled trout
how often should the chimney be swept
what is the legal age to rent a car in another country
how do glaciers carve valleys
who invented the safety razor
what are the symptoms of a sprained ankle
how did medieval monks make ink
which plants attract butterflies to a garden
how do I get candle wax out of a tablecloth
where can I watch the northern lights in march
what is a reasonable rent for two rooms near the university
how does a hot air balloon steer
what is the offside rule in football
how long do swallows take to fly to africa
which shoes are best for running on gravel
how is parmesan cheese aged
what did people eat on long sea voyages
how do I sharpen a kitchen knife with a whetstone
why is the sea salty and the lake not
how do I reverse a linked list without extra memory
which sorting algorithm is stable and works in place
how is a race condition between two threads found
what does the compiler do with an unused variable
how can a web page be tested without a browser
which index does the database use for a range query
how do I merge two branches that changed the same file
what is the difference between a process and a thread
how is a password stored so that it cannot be read
when does the garbage collector free an object
who must be informed when personal data are lost
how long does a landlord have to repay a deposit
which documents must a company keep for ten years
who is liable if a rented machine injures a visitor
what is the penalty for late payment of a fine
under which conditions may a contract be cancelled
how are votes counted if a ballot paper is spoiled
which permits are required to build a garage
does the vaccine protect against the new variant
which drug lowers blood pressure without a cough
does coffee increase the risk of heart disease
how does insulin resistance develop in obese patients
which gene is associated with red hair
what are the side effects of radiation of the neck
how do antibodies recognise the surface of a virus
does vitamin d prevent fractures in old people
which bacteria live in the human gut
how is the half-life of an isotope measured
why do superconductors lose resistance at low temperature
what is the boiling point of ethanol at high altitude
how are exoplanets detected by their transit
which proof shows that there are infinitely many primes
how is the variance of a sum of random variables computed
what does the second law of thermodynamics say about engines
who was the emperor when the aqueduct was built
which treaty ended the war between the two kingdoms
in which city was the mother of the composer born
which film won the prize in the year of the director's death
what is the capital of the country where the river rises
who succeeded the bishop who founded the university
"""

_OTHER_LANGUAGES = """
Wie lange muss der Teig im Kühlschrank ruhen?
Welche Unterlagen brauche ich für die Anmeldung meines Autos?
Quand faut-il tailler les rosiers du jardin ?
Où peut-on louer un vélo près de la gare ?
¿Cuántas horas de sueño necesita un niño pequeño?
¿Qué tren sale mañana hacia la costa?
Come si toglie una macchia di caffè dalla camicia?
Quali sono i sintomi di una carenza di ferro?
Quanto tempo leva para aprender a tocar violão?
Hoe vaak moet je een kamerplant water geven?
Hvor kan jeg kjøpe billett til fjellbanen?
Miten saunan kiuas puhdistetaan?
Ile kosztuje przesyłka paczki za granicę?
Kolik hodin jede vlak do hor?
Hány napig áll el a főtt rizs?
Mennyit kell fizetni a parkolásért?
Bu tarif için kaç yumurta gerekiyor?
Сколько стоит билет в театр на субботу?
Как приготовить борщ без мяса?
Πότε ανοίγει το μουσείο την Κυριακή;
東京から京都まで新幹線で何時間かかりますか
怎样才能让室内植物长得更好
김치는 얼마나 오래 보관할 수 있나요
كم يستغرق السفر بالقطار إلى المدينة
"""

_WORDS = """
abbey acid acrobat aisle algebra almond altitude ambulance anchor antler apron aqueduct archer asphalt auction autumn
bacteria badger bailiff ballad bamboo banker barley basalt beetle bishop blizzard bonfire border bottle bracelet brewery
bridge bronze budget buffalo cabinet cactus calendar camera canal candidate cannon carbon cargo carpenter cathedral
cavalry cello census ceramic champion chapel charter cheese chimney chord citizen clause climate clinic clover cobalt
colony comet compass conductor contract convoy copper coral council courier crane crater cricket crown crystal curtain
dairy debt defence delta dentist deposit diesel diploma dolphin donor drought duchess eclipse editor elbow election
embassy emerald enamel engine entrance enzyme equator estuary exhibit exile fabric factory falcon famine ferry festival
feather filter flute forest fortress fossil fountain fraction freight frontier furnace galaxy garlic garment genome
geyser glacier goblet granite guitar gypsum hamlet harbour harvest hazel heiress helmet herring hinge horizon hormone
hostage hurdle hybrid illness import inflation insect insurance invoice island ivory jacket journal jury kernel kettle
kidney kingdom ladder lagoon lantern latitude lawsuit leather legend lemon lens lever liberty library lizard lobster
locomotive lottery lumber magnet mammal mandate mango manuscript marble margin marsh mayor measles melody merchant
meteor militia mineral minister mirror molecule monarch monsoon mortgage mosaic muscle museum mustard navy needle nerve
nickel noble nurse oak oasis obelisk ocean opera orbit orchard organ ornament otter oxygen oyster paddle painter palace
parade parcel parliament patent peasant pebble pension pepper petition physics piano pigeon pilgrim pilot plague planet
plaster plateau poet polar pollen porcelain portrait poultry prairie prayer premium prince prison prophet protein
province pulse pyramid quarry quartz queen rabbit radiator railway ranch rebel receipt recipe referee reptile republic
reservoir revenue rhythm ribbon rifle ritual river robot rocket rudder saddle salmon sandal satellite sausage sculptor
season senate sermon shadow sheriff shrimp siege signal silver skeleton slavery soldier sonnet spider spinach statue
steam stomach strike sugar surgeon swallow symphony tailor tariff temple tenant textile theatre thunder ticket timber
tobacco torch tournament tractor treaty tribute trumpet tunnel turbine umbrella uniform vaccine valley vapour vault
velvet verdict vessel village vineyard violin virus volcano voter voyage waiter walnut warrior wedding whale wheat
widow winter witness wizard yeast zebra zinc
"""

_SHUFFLED = 100
"""Number of queries of random words."""


def unanswerable_queries() -> list[str]:
    """Returns the same queries every time."""
    shuffled = random_words(_WORDS.split(), _SHUFFLED, np.random.default_rng(0))
    return [*shuffled, *_QUESTIONS.strip().splitlines(), *_OTHER_LANGUAGES.strip().splitlines()]


def random_words(words: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    """Queries of 3 to 12 distinct words."""
    return [" ".join(rng.choice(words, rng.integers(3, 13), replace=False)) for _ in range(count)]
