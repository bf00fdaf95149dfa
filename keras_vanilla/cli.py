"""The command line: arguments in, calls to the library, one-sentence errors out."""

import argparse
import contextlib
import os
import shlex
import sys
import warnings
from pathlib import Path

from keras_vanilla._version import __version__


def main(arguments=None):
    """Runs `keras-vanilla`; returns the exit status.

    Results go to standard output; progress, warnings and errors to standard error. What
    a user got wrong is one sentence and status 1 (2 for the arguments themselves); a
    stop by Ctrl-C is status 130.

    Args:
        arguments: list of str; None means the process's own.
    """
    options = _parser().parse_args(arguments)
    try:
        with _quiet():
            options.run(options)
    except KeyboardInterrupt as stop:
        print(f"\n{str(stop) or 'Stopped.'}", file=sys.stderr)
        return 130
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        print(f"keras-vanilla: {_sentence(error)}", file=sys.stderr)
        return 1
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="keras-vanilla",
        description="Train a translation Transformer, use it, and export it.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_quickstart(commands)
    _add_train(commands)
    _add_translate(commands)
    _add_evaluate(commands)
    _add_export(commands)
    _add_verify(commands)
    return parser


def _add_command(commands, name, run, description):
    command = commands.add_parser(name, help=description, description=description)
    command.set_defaults(run=run)
    return command


def _add_quickstart(commands):
    command = _add_command(
        commands, "quickstart", _quickstart, "train, test and export a small translator"
    )
    command.add_argument(
        "--output",
        default="keras-vanilla-quickstart",
        metavar="DIR",
        help="%(default)s",
    )


def _add_train(commands):
    command = _add_command(
        commands, "train", _train, "train a translator on two files of parallel text"
    )
    add = command.add_argument
    add(
        "--source",
        required=True,
        metavar="FILE",
        help="a sentence a line, or .gz of it",
    )
    add("--target", required=True, metavar="FILE", help="its translation, line by line")
    add("--valid-source", metavar="FILE", help="sentences to validate on")
    add("--valid-target", metavar="FILE", help="their translations")
    add(
        "--output",
        required=True,
        metavar="DIR",
        help="a folder that does not exist yet",
    )
    add("--preset", help="tiny, small, base or big (small)")
    add("--from", dest="start", metavar="MODEL", help="train on from this .keras file")
    add("--epochs", type=int, default=20, help="%(default)s")
    add(
        "--tokens-per-batch",
        type=int,
        default=4096,
        help="%(default)s, padding counted",
    )
    add(
        "--max-tokens",
        type=int,
        default=256,
        help="leave longer pairs out (%(default)s)",
    )
    add("--vocabulary-size", type=int, help="pieces (8000)")
    add("--warmup-steps", type=int, default=4000, help="%(default)s, as in the paper")
    add("--precision", choices=["float32", "mixed_bfloat16"], help="float32")
    add("--seed", type=int, default=0, help="%(default)s")
    add("--overwrite", action="store_true", help="write into a folder that exists")


def _add_translate(commands):
    command = _add_command(
        commands,
        "translate",
        _translate,
        "translate arguments, a file or standard input",
    )
    command.add_argument("model", metavar="MODEL", help="a .keras file")
    command.add_argument("text", nargs="*", metavar="TEXT")
    command.add_argument("--input", metavar="FILE", help="a sentence a line")
    command.add_argument("--output", metavar="FILE", help="a file that does not exist")
    command.add_argument("--max-length", type=int, help="longest output in tokens")


def _add_evaluate(commands):
    command = _add_command(commands, "evaluate", _evaluate, "BLEU and chrF of a model")
    command.add_argument("model", metavar="MODEL", help="a .keras file")
    command.add_argument("--source", required=True, metavar="FILE")
    command.add_argument("--reference", required=True, metavar="FILE")


def _add_export(commands):
    command = _add_command(
        commands, "export", _export, "write a .tflite file or a SavedModel folder"
    )
    command.add_argument("model", metavar="MODEL", help="a .keras file")
    command.add_argument(
        "output", metavar="FILE.tflite|FOLDER", help="must not exist yet"
    )
    command.add_argument(
        "--quantize", choices=["int8", "none"], help="of a .tflite file (int8)"
    )
    for name, what in (("--max-source-length", "source"), ("--max-length", "output")):
        command.add_argument(
            name, type=int, help=f"longest {what} of a .tflite file, in tokens (128)"
        )


def _add_verify(commands):
    command = _add_command(
        commands, "verify", _verify, "compare an exported file with its model"
    )
    command.add_argument("model", metavar="MODEL", help="a .keras file")
    command.add_argument("exported", metavar="FILE.tflite|FOLDER")
    command.add_argument(
        "--source", required=True, metavar="FILE", help="sentences to compare on"
    )


def _quickstart(options):
    from keras_vanilla import quickstart

    _refuse_existing(options.output)
    quickstart.run(options.output)


def _train(options):
    from keras_vanilla.training.fit import Interrupted, train_translator
    from keras_vanilla.translator import Translator

    if (options.valid_source is None) != (options.valid_target is None):
        raise ValueError("--valid-source and --valid-target go together.")
    _refuse_existing(options.output, options.overwrite)
    corpus = _read_corpus(options.source, options.target)
    valid = None
    if options.valid_source:
        valid = _read_corpus(options.valid_source, options.valid_target)
    start = Translator.load(options.start) if options.start else None
    try:
        train_translator(
            corpus,
            options.output,
            valid,
            translator=start,
            preset=options.preset,
            vocabulary_size=options.vocabulary_size,
            dtype=options.precision,
            epochs=options.epochs,
            tokens_per_batch=options.tokens_per_batch,
            max_tokens=options.max_tokens,
            warmup_steps=options.warmup_steps,
            seed=options.seed,
            overwrite=options.overwrite,
        )
    except Interrupted as stop:
        raise KeyboardInterrupt(f"{stop}\n{_train_on(options, stop.path)}") from None
    print((Path(options.output) / "results.json").read_text(), end="")
    _say_what_is_next(Path(options.output), "validation" if valid else "training")


def _train_on(options, path):
    """The command that trains on from a translator that was saved by Ctrl-C."""
    words = ["--source", options.source, "--target", options.target]
    if options.valid_source:
        words += ["--valid-source", options.valid_source]
        words += ["--valid-target", options.valid_target]
    for name in ("epochs", "tokens_per_batch", "max_tokens", "warmup_steps", "seed"):
        words += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    words += ["--output", f"{Path(options.output)}-2", "--from", str(path)]
    command = f"keras-vanilla train {shlex.join(words)}"
    return f"To train on from it, with a new warm-up:\n  {command}"


def _say_what_is_next(folder, measured_on):
    print(
        f"""
{folder}/translator.keras  the translator to use
{folder}/best.keras        the epoch with the lowest {measured_on} cross-entropy
{folder}/last.keras        the last epoch, to train on from
{folder}/logs              for TensorBoard; history.csv has the same numbers

Next:
  keras-vanilla translate {folder}/translator.keras "..."
  keras-vanilla export {folder}/translator.keras {folder}/translator.tflite"""
    )


def _translate(options):
    from keras_vanilla.translator import Translator

    if options.text and options.input:
        raise ValueError("Give texts as arguments or a file with --input, not both.")
    if options.output:
        _refuse_existing(options.output)
        if not Path(options.output).parent.is_dir():
            raise FileNotFoundError(f"There is no folder to write {options.output} in.")
    texts = options.text or _input_lines(options.input)
    translator = Translator.load(options.model)
    translations = translator.translate(texts, options.max_length)
    # A byte piece may be a newline; here it would shift every line after it.
    result = "".join(" ".join(text.split("\n")) + "\n" for text in translations)
    if options.output:
        Path(options.output).write_text(result, encoding="utf-8")
    else:
        sys.stdout.buffer.write(result.encode())


def _evaluate(options):
    from keras_vanilla.evaluation import score
    from keras_vanilla.translator import Translator

    corpus = _read_corpus(options.source, options.reference)
    result = score(Translator.load(options.model), corpus)
    print(
        f"BLEU {result['bleu']:.2f}  chrF {result['chrf']:.2f}  ({len(corpus)} lines)"
    )
    print(result["signature"])


def _export(options):
    from keras_vanilla import export
    from keras_vanilla.translator import Translator

    _refuse_existing(options.output)
    settings = {
        "quantize": options.quantize,
        "max_source_length": options.max_source_length,
        "max_length": options.max_length,
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    if settings.get("quantize") == "none":
        settings["quantize"] = None
    to_file = options.output.endswith(".tflite")
    if not to_file and (settings or Path(options.output).suffix):
        raise ValueError(
            "A file's name ends with .tflite; a SavedModel is a folder, whose name has "
            f"no ending, and takes no options. Received: {options.output}"
        )
    translator = Translator.load(options.model)
    if to_file:
        export.tflite(translator, options.output, **settings)
    else:
        export.saved_model(translator, options.output)
    print(f"{options.output} is written. To compare it with {options.model}:")
    print(f"  keras-vanilla verify {options.model} {options.output} --source FILE")


def _verify(options):
    from keras_vanilla import export
    from keras_vanilla.text.corpus import read_lines
    from keras_vanilla.translator import Translator

    lines = read_lines(options.source)
    report = export.verify(Translator.load(options.model), options.exported, lines)
    print(report)
    if not report.passed:
        raise ValueError(f"{options.exported} does not say what {options.model} says.")


def _read_corpus(source, target):
    """The corpus of two files, after saying which of their lines are left out."""
    from keras_vanilla.text import ParallelCorpus
    from keras_vanilla.text.lines import some_of

    corpus = ParallelCorpus.from_files(source, target)
    for reason, lines in corpus.report.items():
        print(
            f"keras-vanilla: {source} and {target}: {len(lines)} pairs are left out, "
            f"{reason}: lines {some_of(lines)}",
            file=sys.stderr,
        )
    return corpus


def _input_lines(path):
    """The lines of a file or, without one, of standard input."""
    from keras_vanilla.text.corpus import read_lines

    if path is None and sys.stdin.isatty():
        print("Reading sentences from standard input, one a line.", file=sys.stderr)
    return read_lines(path or sys.stdin.buffer)


def _refuse_existing(path, overwrite=False):
    if Path(path).exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; nothing was written.")


@contextlib.contextmanager
def _quiet():
    """Keeps TensorFlow's talk out of what a person reads, and warnings to a sentence.

    Its C++ code logs to file descriptor 2 whatever its settings say, so that descriptor
    leads nowhere while Python's own standard error goes on. Who sets
    TF_CPP_MIN_LOG_LEVEL hears everything.
    """
    warnings.showwarning = lambda message, *_: print(
        f"keras-vanilla: {message}", file=sys.stderr
    )
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        yield
        return
    sys.stderr.flush()
    everything, original = os.dup(2), sys.stderr
    try:
        with (
            open(os.devnull, "wb") as nowhere,
            open(os.dup(everything), "w", encoding="utf-8") as sys.stderr,
        ):
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        sys.stderr = original
        os.dup2(everything, 2)
        os.close(everything)


def _sentence(error):
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    return str(error)
