"""English words that are hardly ever meant as a name where they are in lower case: verbs, and function words.

A corpus that has such a word as a name only (the methods ``GET`` and ``POST``) does not show that it is a word, too.
"""

from __future__ import annotations

from adapters.text.languages import ENGLISH, is_stop_word, stem

_VERBS = """
abandon abort absorb accept access achieve acquire act adapt add address adjust admit adopt advance advise affect afford
agree aim align allocate allow alter amend amount analyse analyze announce answer apologize appear append apply appoint
approach approve argue arise arrange arrest arrive ask assemble assert assess assign assist assume assure attach attack
attempt attend attract avoid award bake balance ban bang bark base bat bathe beat become beg begin behave believe belong
bend bet bid bind bite blame bleed bless block blow boil boot borrow bother bounce bow brake break breathe breed bring
broadcast browse brush build bump burn burst bury buy calculate call calm cancel capture care carry carve cast catch
cause cease celebrate challenge change charge chase chat cheat check cheer chew choose chop claim clap clean clear click
climb cling clone close coach collapse collect combine come comment commit communicate compare compete compile complain
complete compose compress compute concentrate concern conclude conduct confirm confuse connect consider consist
construct consult consume contact contain continue contribute control convert convince copy correct cost count cover
crash crawl create cross crush cry cut cycle damage dance dare deal debug decide declare decline decode decorate
decrease dedicate deepen defeat defend define delay delete deliver demand deny depend deploy derive describe deserve
design destroy detect determine develop die differ dig dip direct disagree disappear discard discover discuss dislike
dismiss dispatch display distribute dive divide divorce double doubt download draft drag drain draw dream dress drift
drill drink drive drop drown dry dump dye earn ease eat echo edit educate elect embed emerge emit employ empty enable
encode encounter encourage end enforce engage enhance enjoy enlarge enroll ensure enter entertain equal escape establish
estimate evaluate evolve examine exchange exclude execute exercise exist exit expand expect experience expire explain
explode explore export expose express extend extract face fade fail fall fasten favour fear feed feel fetch fight fill
filter find finish fire fit fix flash flee float flood flow flush fly focus fold follow forbid force forget forgive fork
form format forward frame free freeze fry fuel fulfil function gain gather generate get give glow glue go govern grab
grant greet grind grip grow guard guess guide hand handle hang happen hate head heal hear heat help hesitate hide hire
hit hold hop hope hug hunt hurry hurt identify ignore illustrate imagine implement import impose impress improve include
increase indicate infer influence inform inherit inject injure insert inspect inspire install intend interact interpret
interrupt introduce invent invest investigate invite invoke involve issue iterate join joke jump justify keep kick kill
kiss kneel knit knock know label lack land last laugh launch lay lead leak lean leap learn leave lend let lick lift like
limit link list listen live load lock log look loop lose lower maintain make manage map march mark marry match matter
mean measure meet melt mend mention merge migrate mind miss mix modify monitor mount mourn move multiply murder need
negotiate nest nod note notice notify obey object observe obtain occupy occur offer omit open operate oppose optimize
order organize overcome overlap override owe own pack paint park parse part participate pass paste patch pause pay peel
perform permit persuade pick pin plan plant play plead please plot plug point polish pop possess post pour practise
pray predict prefer prepare present preserve press pretend prevent print proceed process produce program promise promote
prompt prove provide publish pull pump punch punish purchase push put qualify query queue quit quote race rain raise
reach react read realize rebuild receive recognize recommend reconcile record recover recycle redirect reduce refer
reflect refresh refuse register regret reject relate relax release rely remain remember remind remove rename render
renew rent repair repeat replace reply report represent request require reset resign resist resolve respond rest restart
restore restrict result resume retain retire retrieve retry return reveal reverse review revise rewrite ride ring rinse
rise roar rob rock roll rotate rub ruin rule run rush sail satisfy save say scale scan scare scatter schedule scrape
scratch scream screw scroll search secure see seek seem select sell send separate serve set settle sew shake shape share
shift shine ship shoot shop shout show shrink shut sign simplify sing sink sit skip sleep slice slide slip slow smash
smell smile smoke smooth snap sneeze snow soak solve sort sound spare spawn speak specify spell spend spill spin split
spoil spot spray spread squash squeeze stack stand stare start state stay steal steer step stick sting stir stop store
strengthen stretch strike strip struggle study submit subscribe succeed suck suffer suggest suit summarize supply
support suppose surprise surround survive suspect suspend swap swear sweat sweep swell swim swing switch take talk tap
taste teach tear tell tempt tend terminate test thank think throw tick tie time tip touch tour trace track trade train
transfer transform translate transmit transport trap travel treat tremble trick trigger trim trip trust try tune turn
twist type understand undo unlock update upgrade upload use validate vanish vary verify visit vote wait wake walk want
warm warn wash waste watch water wave weaken wear weave weigh welcome whisper win wind wipe wish withdraw wonder work
worry wrap wreck write yell yield zip
"""
_IRREGULAR_FORMS = """
ate bound bought bred broke brought built burnt came caught chose chosen clung crept dealt did drank drawn dreamt drew
drove drunk dug fed fell fled flew flown forbade forgot forgotten fought found froze frozen gave given gone got gotten
grew ground grown held hid hung kept knew known laid lain lay led lent lit lost made meant met paid ran rang risen rode
rose said sang sat saw seen sent shaken shone shook shot slept slid sold sought spent spoke spoken sprang spun stole
stood struck stuck stung sung sunk swam swept sworn swung taken taught thought threw thrown told took tore torn
understood went wept woke won wore worn wound wove written wrote
"""
_FUNCTION_WORDS = """
about above across after again against all almost alone along already also although always among another any anybody
anyone anything anywhere around away back because been before behind being below beneath beside best better between
beyond both can cannot could did do does doing done down during each either else enough even ever every everyone
everything few first for former further had has have having he hence her here hers herself him himself his how however i
indeed inside instead its itself just later least less like many may maybe me might mine more most much must my myself
near neither never next nobody none nor nothing now nowhere off often once one only onto other others otherwise our ours
ourselves out outside over own per perhaps please quite rather really same second several shall she should since so some
somebody someone something sometimes somewhere soon still than themselves therefore though through throughout thus
together too toward towards under unless until up upon us very via we well were what whatever when whenever where
whereas wherever whether which while who whoever whole whom whose why within without would yes yet you your yours
yourself
"""
_FUNCTION = frozenset(_FUNCTION_WORDS.split())
_STEMS = frozenset(stem(word, ENGLISH) for word in (*_VERBS.split(), *_IRREGULAR_FORMS.split(), *_FUNCTION))


def is_function_word(word: str) -> bool:
    """Whether a case-folded word is one of the function words."""
    return word in _FUNCTION


def is_ordinary_word(word: str) -> bool:
    """Whether a case-folded word is one of these, in any of its forms, or a stop word."""
    return is_stop_word(word) or stem(word, ENGLISH) in _STEMS
