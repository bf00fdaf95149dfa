"""Parallel text as the commands name it: files, or a public corpus."""

from keras_vanilla.cli.console import say


def add_corpus_options(command, target="target", shards=False):
    """`--source` and the like, for the commands that read parallel text.

    Args:
        command: the parser to add them to.
        target: str. The name of the option for the translation.
        shards: bool. Several files each; such an option swallows a MODEL after it.
    """
    add = command.add_argument
    files = {"nargs": "+" if shards else None, "metavar": "FILE"}
    some = "; several files are read one after the other" if shards else ""
    add("--source", **files, help=f"a sentence a line, or .gz of it{some}")
    add(f"--{target}", **files, help="its translation, line by line")
    add("--corpus", metavar="tfds:NAME", help="instead of files, a public corpus")
    add("--reverse", action="store_true", help="from its second language to its first")


def add_cache_option(command):
    """`--cache`, for a command that trains."""
    command.add_argument(
        "--cache",
        metavar="DIR",
        help="keep the ids of --source and --target there, not in memory",
    )


def read_corpus(options, target, split):
    """The corpus that the options name, after saying which lines are left out.

    Args:
        options: with the attributes of `add_corpus_options`.
        target: path of the target file, or several, or None.
        split: str, of a public corpus.
    """
    if check_corpus(options, target):
        return read_files(options.source, target)
    return read_public(options.corpus, split, options.reverse)


def check_corpus(options, target):
    """Whether the options name files; they must name those or a public corpus."""
    if (options.corpus is None) == (options.source is None):
        raise ValueError("Give either --source with its translation, or --corpus.")
    if options.corpus is None:
        if target is None:
            raise ValueError("--source needs the file of its translation.")
        if options.reverse:
            raise ValueError("--reverse is for --corpus; swap the two files.")
        return True
    if target is not None:
        raise ValueError("--corpus has its translations: give no file of them.")
    return False


def read_cache(options, tokenizer):
    """The cache in `--cache` of the training files, made if it is not there yet.

    Args:
        options: with the attributes of `add_corpus_options`, `add_cache_option`, and
            `max_tokens`.
        tokenizer: Tokenizer.
    """
    from keras_vanilla.data import TokenCache
    from keras_vanilla.distribution.replicas import replicas_in_force

    if not check_corpus(options, options.target):
        raise ValueError("--cache is for --source and --target.")
    if replicas_in_force().in_other_processes:
        TokenCache.open(options.cache)  # all at once could not make it
    return TokenCache.make(
        options.source,
        options.target,
        tokenizer,
        options.cache,
        max_tokens=options.max_tokens,
        progress=say,
    )


def train_tokenizer(options):
    """A tokenizer for `--cache`, of the training files, which stay out of memory."""
    from keras_vanilla.data import FileLines
    from keras_vanilla.tokenizer import Tokenizer

    size = options.vocabulary_size
    if options.separate_vocabularies:
        sides = FileLines(*options.source), FileLines(*options.target)
        return Tokenizer.train_separate(*sides, vocabulary_size=size)
    lines = FileLines(*options.source, *options.target)
    return Tokenizer.train(lines, vocabulary_size=size)


def read_files(source, target):
    """The corpus of files, after saying which of their lines are left out."""
    from keras_vanilla.data import ParallelCorpus

    corpus = ParallelCorpus.from_files(source, target)
    return _told(corpus, corpus.origin)


def read_public(name, split, reverse=False):
    """A public corpus, after saying which of its pairs are left out."""
    from keras_vanilla.data import ParallelCorpus

    if not name.startswith("tfds:"):
        raise ValueError(
            "--corpus expects tfds: and a name of tensorflow-datasets, such as "
            f"tfds:ted_hrlr_translate/pt_to_en. Received: {name}"
        )
    corpus = ParallelCorpus.from_tfds(name, split, reverse=reverse)
    return _told(corpus, f"{name} {split}")


def read_public_validation(name, reverse=False):
    """Its validation split, or None if it has none."""
    from keras_vanilla.data.tfds import split_names

    if "validation" not in split_names(name):
        return None
    return read_public(name, "validation", reverse)


def _told(corpus, name):
    from keras_vanilla._checks import some_of

    for reason, lines in corpus.report.items():
        say(
            f"{name}: {len(lines)} pairs are left out, {reason}: lines {some_of(lines)}"
        )
    return corpus
