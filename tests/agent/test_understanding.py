from __future__ import annotations

import pytest

from agent.outcomes import Option
from agent.understanding import understand, understand_choice
from storage.terms import content_terms
from storage.transcript import Said


def user(text: str) -> Said:
    return Said(author="user", user="ann", text=text, kind="message", message="m1")


def bot(text: str, kind: str = "answer") -> Said:
    return Said(author="bot", user="", text=text, kind=kind, message="m2")


def terms(text: str) -> set[str]:
    return set(content_terms(text))


NOTICE = [user("What is the notice period for employees?"), bot("The notice period is two months. [1]")]


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "@bot hi",
        "hello @Threadlore!",
        "<@U123> hi",
        "Hello!",
        "hey there 👋",
        "Good morning everyone",
        "thanks",
        "Thanks a lot!",
        "thank you so much, that helped",
        "ok great, thanks!",
        "ok thanks Bob, will do",
        "Thanks, Bob!",
        "will do, thanks",
        "great, sounds good, thanks a lot Anna",
        "perfect, thank you",
        "thx 🙏",
        "👍",
        "what can you do?",
        "Who are you?",
        "help",
        "how do you work?",
        "Hallo zusammen",
        "Danke dir!",
        "Was kannst du?",
        "你好",
        "谢谢！",
        "好的，谢谢",
        "你能做什么？",
        "<@U123> hello",
    ],
)
def test_small_talk_gets_a_short_friendly_reply(text: str) -> None:
    understood = understand(text, [])
    assert understood.kind == "chat"
    assert understood.reply
    assert not understood.questions


@pytest.mark.parametrize(
    ("text", "reply"),
    [("Danke!", "Gern"), ("谢谢", "不客气"), ("thank you", "welcome"), ("Hallo", "Hallo"), ("你好", "你好")],
)
def test_small_talk_is_answered_in_its_own_language(text: str, reply: str) -> None:
    assert reply in understand(text, []).reply


@pytest.mark.parametrize(
    "text",
    [
        "what can I do with a damaged laptop?",
        "who are the contractors?",
        "hello world program in the handbook?",
        "what do you need for a visa?",
        "list the holidays",
        "notice period for contractors",
        "help desk opening hours",
        "good faith clause",
        "谢谢信应该怎么写？",
        "ok List the holidays",
    ],
)
def test_what_only_looks_like_small_talk_is_a_question(text: str) -> None:
    understood = understand(text, [])
    assert understood.kind == "questions"
    assert understood.questions == (text,)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Hi! What is the notice period?", "What is the notice period?"),
        ("hello, what is the notice period?", "what is the notice period?"),
        ("What is the notice period? Thanks!", "What is the notice period?"),
        ("thanks, Parking?", "Parking?"),
        ("Hi there 👋 what is the notice period? thank you in advance", "what is the notice period?"),
        ("你好，通知期是多久？谢谢！", "通知期是多久？"),
        ("Danke! Und wie lange gilt die Garantie?", "Und wie lange gilt die Garantie?"),
    ],
)
def test_pleasantries_around_a_question_are_left_out(text: str, question: str) -> None:
    assert understand(text, []).questions[0].endswith(question)
    assert len(understand(text, []).questions) == 1


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        (
            "What is the notice period? How many vacation days do I get?",
            ("What is the notice period?", "How many vacation days do I get?"),
        ),
        (
            "1. What is the notice period?\n2. How many vacation days are there?\n3. Where is the office?",
            ("What is the notice period?", "How many vacation days are there?", "Where is the office?"),
        ),
        (
            "Two questions:\n- who signs contracts\n- when is payday",
            ("who signs contracts", "when is payday"),
        ),
        (
            "What is the notice period and how many vacation days do employees get?",
            ("What is the notice period?", "how many vacation days do employees get?"),
        ),
        ("When is payday?\nWho approves travel?", ("When is payday?", "Who approves travel?")),
        ("通知期是多久？年假有几天？", ("通知期是多久？", "年假有几天？")),
        ("Wie lange ist die Probezeit und wann ist Zahltag?", ("Wie lange ist die Probezeit?", "wann ist Zahltag?")),
        ("List the holidays. Who approves travel?", ("List the holidays.", "Who approves travel?")),
        (
            "How high is the rent, and are dogs allowed in the office?",
            ("How high is the rent?", "are dogs allowed in the office?"),
        ),
        ("What is the rent and is parking included?", ("What is the rent?", "is parking included?")),
        (
            "Who approves holiday, and can contractors take it?",
            ("Who approves holiday?", "can contractors take holiday?"),
        ),
        (
            "How do I request holiday and until when can days be carried over?",
            ("How do I request holiday?", "until when can days be carried over?"),
        ),
        ("How long is the lease and has Birch signed it?", ("How long is the lease?", "has Birch signed the lease?")),
        ("Wie hoch ist die Miete und sind Hunde erlaubt?", ("Wie hoch ist die Miete?", "sind Hunde erlaubt?")),
    ],
)
def test_several_questions_are_told_apart_in_order(text: str, questions: tuple[str, ...]) -> None:
    assert understand(text, []).questions == questions


@pytest.mark.parametrize(
    "text",
    [
        "If a contractor leaves, what happens to the laptop?",
        'What does "Why me?" mean in the handbook?',
        "What does the chapter “Who pays?” say about travel?",
        "What are the notice period and the probation period?",
        "Which rooms have a projector, a whiteboard and a phone?",
        "What is covered by section 3.2 of the lease, and by the annex?",
        "Who approves travel to the U.S. and Canada?",
        "Do you know who signed the lease and when it was signed?",
        "I work in Berlin. How many public holidays are there?",
        "What are the hours and the address of the office?",
        "Which rooms are big and are available on Mondays?",
        "Who is responsible and can sign contracts?",
        "What is the fee that applies and is charged monthly?",
        "Which contracts expire and are not renewed?",
        "Who can open the door and can lock it?",
        "On which day and in which room is the party?",
        "老师说“为什么？”是什么意思",
    ],
)
def test_one_question_stays_one(text: str) -> None:
    assert understand(text, []).questions == (text,)


def test_an_introduction_that_names_something_goes_with_each_item_of_a_list() -> None:
    understood = understand("About the Berlin lease:\n1) how long does it run?\n2) who signed?", [])
    assert len(understood.questions) == 2
    assert all({"berlin", "leas"} <= terms(question) for question in understood.questions)


def test_more_questions_than_the_limit_are_left_out_with_a_remark() -> None:
    understood = understand("Who is A1? Who is B2? Who is C3? Who is D4? Who is E5?", [])
    assert len(understood.questions) == 4
    assert "4 questions" in understood.reply


def test_a_later_question_may_refer_to_the_one_before_it_in_the_message() -> None:
    understood = understand("What is the notice period for contractors? And for employees?", [])
    assert understood.questions[1] == "What is the notice period for employees?"


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("and for contractors?", "What is the notice period for contractors?"),
        ("And for contractors in Berlin?", "What is the notice period for contractors in Berlin?"),
        ("what about contractors?", "What is the notice period for contractors?"),
        ("What about the probation period?", "What is the probation period for employees?"),
        ("for contractors?", "What is the notice period for contractors?"),
        ("and contractors?", "What is the notice period for contractors?"),
        ("contractors?", "What is the notice period for contractors?"),
        ("how about for interns", "What is the notice period for interns?"),
        ("thanks! and for contractors?", "What is the notice period for contractors?"),
    ],
)
def test_a_fragment_takes_the_place_of_its_like_in_the_question_before(text: str, question: str) -> None:
    assert understand(text, NOTICE).questions == (question,)


@pytest.mark.parametrize(
    ("asked", "text", "holds", "leaves"),
    [
        ("What was the revenue in 2018?", "what about 2019?", "revenue 2019", "2018"),
        ("What was the revenue in 2018?", "and in 2019?", "revenue 2019", "2018"),
        ("What was the revenue?", "and in 2019?", "revenue 2019", ""),
        ("Who leads the office in Berlin?", "and in Munich?", "leads office Munich", "Berlin"),
        ("Who leads the Berlin office?", "what about Munich?", "leads Munich office", "Berlin"),
        ("How many vacation days do employees get?", "and sick days?", "sick days employees", "vacation"),
        ("What is the warranty on laptops?", "and on phones?", "warranty phones", "laptops"),
        ("Can you tell me the rent of the Hamburg office?", "and the Berlin office?", "rent Berlin office", "Hamburg"),
        (
            "Wie lange ist die Kündigungsfrist für Angestellte?",
            "und für Freie?",
            "Kündigungsfrist Freie",
            "Angestellte",
        ),
        ("Wie hoch war der Umsatz 2018?", "was ist mit 2019?", "Umsatz 2019", "2018"),
        ("员工的通知期是多久？", "那承包商呢？", "承包商 通知期", "员工"),
        ("员工的通知期是多久？", "承包商呢", "承包商 通知期", "员工"),
        ("员工的通知期是多久？", "那试用期呢？", "员工 试用期", "通知"),
        ("2018年的收入是多少？", "2019年呢？", "2019 收入", "2018"),
        ("北京办公室的租金是多少？", "上海办公室呢？", "上海 租金", "北京"),
    ],
)
def test_a_follow_up_holds_the_right_terms_and_not_the_replaced_ones(
    asked: str, text: str, holds: str, leaves: str
) -> None:
    understood = understand(text, [user(asked), bot("So it is. [1]")])
    assert len(understood.questions) == 1
    assert terms(holds) <= terms(understood.questions[0]), understood.questions
    assert not terms(leaves) & terms(understood.questions[0]), understood.questions


@pytest.mark.parametrize(
    ("asked", "answered", "text", "holds"),
    [
        (
            "What is the notice period for contractors?",
            "It is in clause 7. [1]",
            "how long is it?",
            "notice period contractors",
        ),
        ("When does the lease end?", "In May.", "and who signed it?", "signed lease"),
        ("When does the lease end?", "In May.", "Does this include parking?", "lease include parking"),
        ("Which contract covers Berlin?", "The Meyer lease covers Berlin. [1]", "who signed it?", "signed"),
        (
            "Who founded the company?",
            "Anna Schmidt founded the company. [1]",
            "where was she born?",
            "Anna Schmidt born",
        ),
        ("Where did Frank Zappa live?", "In Los Angeles.", "Who did he marry?", "Frank Zappa marry"),
        ("What is the notice period for employees?", "Two months.", "why?", "notice period employees"),
        ("What is the notice period for employees?", "Two months.", "since when?", "notice period employees"),
        ("Wer hat den Mietvertrag unterschrieben?", "Anna.", "wann?", "Mietvertrag unterschrieben"),
        ("What is the deadline for expenses?", "The 5th.", "how many days?", "days deadline expenses"),
        ("员工的通知期是多久？", "两个月。", "为什么？", "员工 通知期"),
        ("这份租约什么时候到期？", "五月。", "它是谁签的？", "租约 签"),
    ],
)
def test_what_a_pronoun_or_a_bare_question_word_refers_to_is_filled_in(
    asked: str, answered: str, text: str, holds: str
) -> None:
    understood = understand(text, [user(asked), bot(answered)])
    assert understood.kind == "questions"
    assert terms(holds) <= terms(understood.questions[0]), understood.questions


@pytest.mark.parametrize(
    ("asked", "text", "question"),
    [
        (
            "What is the notice period of the Birch contract?",
            "and how much does it cost?",
            "how much does the Birch contract cost?",
        ),
        (
            "What is the notice period of the Birch contract?",
            "what is its monthly fee?",
            "what is the Birch contract's monthly fee?",
        ),
        (
            "What is the Birch contract's notice period?",
            "how much does it cost?",
            "how much does the Birch contract cost?",
        ),
        ("What is the number of employees?", "does it grow?", "does the number of employees grow?"),
        ("Birch合同的通知期是多久？", "它的月费是多少？", "Birch合同的月费是多少？"),
    ],
)
def test_of_an_attribute_it_is_the_owner_that_has_another(asked: str, text: str, question: str) -> None:
    assert understand(text, [user(asked), bot("So it is. [1]")]).questions == (question,)


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [
        ("and what is the monthly fee?", True),
        ("How can I give notice there?", True),
        ("why?", True),
        ("那月费是多少？", True),
        ("What is the monthly fee?", False),
        ("How many public holidays are there?", False),
        ("Is there a canteen in Berlin?", False),
    ],
)
def test_whether_a_question_goes_on_from_the_thread(text: str, goes_on: bool) -> None:
    assert understand(text, NOTICE).goes_on is goes_on


@pytest.mark.parametrize(
    ("asked", "text", "question"),
    [
        (
            "How many days of annual leave do employees have?",
            "and for contractors?",
            "How many days of annual leave do contractors have?",
        ),
        ("What is the monthly fee of Birchwood?", "and for Aldgate?", "What is the monthly fee for Aldgate?"),
        ("What is the hotel limit in 2024?", "and in 2025?", "What is the hotel limit in 2025?"),
        ("How much is the red lamp?", "and the blue one?", "How much is the blue lamp?"),
    ],
)
def test_what_is_named_anew_takes_the_place_of_what_was_named(asked: str, text: str, question: str) -> None:
    assert understand(text, [user(asked), bot("So and so. [1]")]).questions == (question,)


def test_follow_ups_chain() -> None:
    said = [
        *NOTICE,
        user("and for contractors?"),
        bot("One month. [1]"),
        user("thanks!"),
        bot("You're welcome!", "chat"),
    ]
    assert understand("and in Berlin?", said).questions == ("What is the notice period for contractors in Berlin?",)


def test_the_answer_to_a_clarification_goes_with_its_question() -> None:
    said = [
        user("What is the notice period?"),
        bot("Which one do you mean?", "clarification"),
        user("the Meyer contract"),
        bot("Two months. [1]"),
    ]
    assert {"notic", "period", "meyer"} <= terms(understand("why?", said).questions[0])


@pytest.mark.parametrize(
    "text",
    [
        "What is the dress code in the office?",
        "Who is the CEO?",
        "list the public holidays",
        "parental leave policy for managers",
        "Is it possible to work from home on Fridays?",
        "And what is the dress code in the office?",
        "办公室的着装要求是什么？",
    ],
)
def test_a_question_that_stands_by_itself_takes_nothing_from_the_thread(text: str) -> None:
    assert terms(understand(text, NOTICE).questions[0]) == terms(text)


@pytest.mark.parametrize(
    "text",
    [
        "tell me about that thing",
        "what does it say?",
        "explain this",
        "summarise the document",
        "what is it about?",
        "how does it work?",
        "why?",
        "and?",
        "tell me more",
        "how long is it?",
        "Was steht da drin?",
        "这个是什么？",
        "那个东西怎么样？",
        "这份文件说了什么？",
    ],
)
def test_what_refers_to_nothing_is_asked_back_openly(text: str) -> None:
    understood = understand(text, [])
    assert understood.kind == "open"
    assert understood.reply.rstrip().endswith(("?", "？", ".", "。"))
    assert not understood.questions


def test_small_talk_before_gives_nothing_to_refer_to() -> None:
    assert understand("tell me about that thing", [user("hello"), bot("Hello!", "chat")]).kind == "open"


@pytest.mark.parametrize(
    "text", ["what does this file say?", "summarise it", "what does clause 7 say?", "这份文件说了什么？"]
)
def test_an_attached_file_is_something_to_refer_to(text: str) -> None:
    understood = understand(text, [], attached_names=["lease.pdf"])
    assert understood.kind == "questions"
    assert understood.questions == (text,)


@pytest.mark.parametrize(
    "text", ["", "   ", "?", "???", "\n\n", "🤷", "a" * 4000, "? " * 500, "((((" * 300, '"' * 99 + "?"]
)
def test_odd_messages_are_survived(text: str) -> None:
    assert understand(text, NOTICE).kind in ("chat", "questions", "open")
    assert understand(text, []).kind in ("chat", "questions", "open")


LEASES = [Option(label=name) for name in ("Meyer contract", "Schulze contract", "Nowak contract")]
OFFICES = [Option(label="Office Berlin"), Option(label="Office Munich")]
CHINESE = [Option(label="北京租约"), Option(label="上海租约"), Option(label="深圳租约")]
QUESTION = "What is the notice period?"


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("2", (1,)),
        ("the second one", (1,)),
        ("second", (1,)),
        ("#3", (2,)),
        ("option 1", (0,)),
        ("the last one please", (2,)),
        ("first and third", (0, 2)),
        ("1 and 2", (0, 1)),
        ("1, 3", (0, 2)),
        ("all of them", (0, 1, 2)),
        ("all three", (0, 1, 2)),
        ("Meyer", (0,)),
        ("the meyer one", (0,)),
        ("I mean the Schulze contract", (1,)),
        ("schultze", (1,)),
        ("Nowak and Meyer", (0, 2)),
        ("das zweite", (1,)),
        ("alle", (0, 1, 2)),
        ("the Nowak contract, thanks", (2,)),
        ("Meyer contract?", (0,)),
    ],
)
def test_an_option_is_chosen_by_number_place_or_name(text: str, chosen: tuple[int, ...]) -> None:
    choice = understand_choice(text, None, LEASES, QUESTION)
    assert (choice.kind, choice.options) == ("options", chosen)
    assert choice.question == QUESTION


def test_a_click_is_an_option() -> None:
    assert understand_choice("Nowak contract", 2, LEASES, QUESTION).options == (2,)
    assert understand_choice("Nowak", 9, LEASES, QUESTION).options == (2,)


@pytest.mark.parametrize(
    ("text", "chosen"), [("both", (0, 1)), ("both of them", (0, 1)), ("beide", (0, 1)), ("两个都要", (0, 1))]
)
def test_both(text: str, chosen: tuple[int, ...]) -> None:
    assert understand_choice(text, None, OFFICES, QUESTION).options == chosen


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("第二个", (1,)),
        ("第1个", (0,)),
        ("选三", (2,)),
        ("全部", (0, 1, 2)),
        ("上海", (1,)),
        ("我要北京的", (0,)),
        ("最后一个", (2,)),
    ],
)
def test_an_option_is_chosen_in_chinese(text: str, chosen: tuple[int, ...]) -> None:
    choice = understand_choice(text, None, CHINESE, "通知期是多久？")
    assert (choice.kind, choice.options) == ("options", chosen)


@pytest.mark.parametrize(
    "text",
    [
        "the one for contractors",
        "for freelancers in Berlin",
        "I mean the one we signed in 2021",
        "none of these, the old one",
    ],
)
def test_a_free_sentence_narrows_the_question(text: str) -> None:
    choice = understand_choice(text, None, LEASES, QUESTION)
    assert choice.kind == "words"
    assert terms(QUESTION) <= terms(choice.question)
    assert terms(text) - {"mean", "one"} <= terms(choice.question)


@pytest.mark.parametrize(
    "text",
    ["How many vacation days do employees get?", "Who is the CEO?", "when is the summer party", "食堂几点开门？"],
)
def test_a_whole_new_question_is_understood_as_one(text: str) -> None:
    choice = understand_choice(text, None, LEASES, QUESTION)
    assert (choice.kind, choice.question) == ("new_question", text)


def test_a_new_question_that_names_an_option_is_no_choice() -> None:
    choice = understand_choice("When was the Meyer office building sold to investors?", None, LEASES, QUESTION)
    assert choice.kind == "words" or choice.kind == "new_question"
    assert {"sold", "investor"} <= terms(choice.question)
