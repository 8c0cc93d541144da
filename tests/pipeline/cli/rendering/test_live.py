import io

from rich.console import Console
from rich.live import Live

from regard.components.common.run_progress import Progress
from regard.pipeline.cli.rendering import live

EVENTS = [
    {"kind": "progress", "node": "", "text": "importing TFX"},
    {"kind": "plan", "nodes": ["CorpusGen", "StatisticsGen", "Trainer", "Pusher"]},
    {"kind": "node", "node": "CorpusGen", "state": "running", "time": 100.0},
    {"kind": "warning", "node": "CorpusGen", "text": "2 rows skipped"},
    {"kind": "node", "node": "CorpusGen", "state": "done", "seconds": 5.25},
    {"kind": "node", "node": "StatisticsGen", "state": "running", "time": 105.0},
    {"kind": "node", "node": "StatisticsGen", "state": "cached", "seconds": 0.04},
    {"kind": "node", "node": "Trainer", "state": "running", "time": 110.0},
    {"kind": "note", "node": "Trainer", "text": "resumed at step 1200"},
    {"kind": "progress", "node": "Trainer", "text": "epoch 2, loss 1.25", "fraction": 0.5},
]


def _state(events=EVENTS) -> Progress:
    state = Progress(["CorpusGen", "Evaluator"])
    for event in events:
        state.apply(event)
    return state


def _draw(state: Progress, width: int = 80, **options) -> str:
    console = Console(file=io.StringIO(), width=width, **options)
    view = live.LiveView(console, Live())
    console.print(view.draw(state, now=175.0))
    return console.file.getvalue()


def test_live_view_shows_state_time_and_progress():
    text = _draw(_state())
    lines = {line.split()[1]: line for line in text.splitlines() if len(line.split()) > 1}
    assert lines["CorpusGen"].startswith("✓ CorpusGen")
    assert "5.2 s" in lines["CorpusGen"]
    assert "2 rows skipped" in lines["CorpusGen"]
    assert lines["StatisticsGen"].startswith("⟲")
    assert "cached" in lines["StatisticsGen"]
    assert lines["Trainer"].startswith("● Trainer")
    assert "1:05" in lines["Trainer"]
    assert "epoch 2, loss 1.25" in lines["Trainer"]
    assert "━" in text
    assert "resumed at step 1200" in text
    assert lines["Pusher"].startswith("○ Pusher")
    assert "Evaluator" not in text  # the plan leaves it out


def test_the_path_of_the_log_is_not_wrapped():
    console = Console(file=io.StringIO(), width=40, force_terminal=True, color_system=None)
    path = f"/{'folder/' * 20}log.txt"
    with live.TerminalDisplay(console).view("quickstart  run 1", path):
        pass
    assert console.file.getvalue().startswith(f"quickstart  run 1\nlog: {path}\n")


def test_of_many_notes_the_latest_are_shown():
    notes = [{"kind": "note", "node": "Trainer", "text": f"note {i:02d}"} for i in range(25)]
    text = _draw(_state([*EVENTS, *notes]))
    assert "… 16 earlier" in text  # one was there already
    assert "note 14" not in text
    assert text.index("note 15") < text.index("note 24")


def test_a_successful_run_leaves_to_its_summary_what_that_contains():
    end = [
        {"kind": "result", "node": "Trainer", "text": "training ended by max_steps"},
        {"kind": "result", "node": "Pusher", "text": "Pushed as tiny@1"},
        {"kind": "node", "node": "Trainer", "state": "done", "seconds": 65.0},
    ]
    last = {"kind": "node", "node": "Pusher", "seconds": 0.5}
    repeated = ("2 rows skipped", "training ended by max_steps", "Pushed as tiny@1")

    def draw(events, has_summary):
        console = Console(file=io.StringIO(), width=80)
        view = live.LiveView(console, Live(), has_summary)
        console.print(view.draw(_state([*EVENTS, *events])))
        text = console.file.getvalue()
        assert "resumed at step 1200" in text  # a note, which no summary contains
        return [each in text for each in repeated]

    assert draw(end, has_summary=True) == [True] * 3  # the Pusher has not ended
    assert draw([*end, {**last, "state": "failed"}], has_summary=True) == [True] * 3
    assert draw([*end, {**last, "state": "done"}], has_summary=True) == [False] * 3
    assert draw([*end, {**last, "state": "done"}], has_summary=False) == [True] * 3


def test_live_view_before_the_plan():
    text = _draw(_state(EVENTS[:1]))
    assert "importing TFX …" in text
    assert "○ Evaluator" in text


def test_live_view_fits_a_narrow_terminal():
    assert max(map(len, _draw(_state(), width=40).splitlines())) <= 40


def test_plain_view_prints_one_line_an_event():
    console = Console(file=io.StringIO(), width=40)
    state = Progress([])
    with live.TerminalDisplay(console).view(
        "quickstart  run 1", "/w/" + "long/" * 20 + "log.txt"
    ) as view:
        for event in EVENTS:
            state.apply(event)
            view.event(event, state)
            view.refresh(state)
    lines = console.file.getvalue().splitlines()
    assert lines[1].endswith("log.txt")  # not wrapped
    assert lines[2:] == [
        "  importing TFX",
        "● CorpusGen",
        "  CorpusGen: warning: 2 rows skipped",
        "✓ CorpusGen 5.2 s",
        "⟲ StatisticsGen cached",
        "● Trainer",
        "  Trainer: resumed at step 1200",
    ]


def test_plain_view_shows_progress_from_time_to_time(monkeypatch):
    console = Console(file=io.StringIO(), width=80)
    clock = iter([0.0, 5.0, 30.0, 35.0])
    monkeypatch.setattr(live.time, "monotonic", lambda: next(clock))
    state = Progress([])
    view = live.PlainView(console, "t", "l")
    for number in range(4):
        event = {"kind": "progress", "node": "Trainer", "text": f"step {number}"}
        state.apply(event)
        view.event(event, state)
    assert console.file.getvalue().splitlines()[2:] == ["  Trainer: step 0", "  Trainer: step 2"]


def test_ascii_where_the_terminal_has_no_more():
    class Ascii(io.StringIO):
        encoding = "ascii"

    console = Console(file=Ascii(), width=80)
    assert live.symbol("done", console)[0] == "+"


def test_live_view_redraws_in_a_terminal():
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with live.TerminalDisplay(console).view("quickstart", "/w/log.txt") as view:
        view.refresh(_state())
        view.say("Stopping …")
        view.refresh(_state())
    assert "Stopping …" in console.file.getvalue()
    assert isinstance(view, live.LiveView)


def test_plain_view_says_that_a_node_runs_when_it_takes_a_moment(monkeypatch):
    console = Console(file=io.StringIO(), width=80)
    now = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    state = Progress([])
    view = live.PlainView(console, "t", "l")
    event = {"kind": "node", "node": "Trainer", "state": "running"}
    state.apply(event)
    view.event(event, state)
    view.refresh(state)
    assert len(console.file.getvalue().splitlines()) == 2
    now[0] = 1.0
    view.refresh(state)
    view.refresh(state)
    assert console.file.getvalue().splitlines()[2:] == ["● Trainer"]


def test_a_verbose_display_prints_the_log(tmp_path):
    log, state = tmp_path / "log.txt", _state()
    console = Console(file=io.StringIO(), width=40, force_terminal=True, color_system=None)
    with live.TerminalDisplay(console, verbose=True).view("quickstart  run 1", str(log)) as view:
        view.refresh(state)  # there is no log yet
        log.write_bytes(b"first [line]\nsec")
        view.refresh(state)
        printed = console.file.getvalue()
        assert printed.splitlines()[-1] == "first [line]"
        log.write_bytes(b"first [line]\nsecond \xff\nlast")
    assert (
        console.file.getvalue().removeprefix(printed) == "second \N{REPLACEMENT CHARACTER}\nlast\n"
    )


def test_a_quiet_display_prints_nothing(capsys, tmp_path):
    console = Console(file=io.StringIO(), quiet=True)
    display = live.TerminalDisplay(console)
    display.message("data: 2 rows")
    with display.view("quickstart  run 1", str(tmp_path / "log.txt")) as view:
        view.say("Stopping")
    assert (console.file.getvalue(), *capsys.readouterr()) == ("", "", "")
