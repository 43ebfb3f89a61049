"""Language models."""

import unittest

import numpy

import berth

TALE = "examples/tale/tale.gguf"
PROMPT = "Once upon a time"


class Texts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = berth.Generator(TALE, ctx=128, temperature=0, threads=1)

    def setUp(self):
        self.model.reset()
        self.model.sample(temperature=0)

    def test_text_goes_on(self):
        text = "".join(self.model.generate(PROMPT, 20))
        self.assertGreater(len(text), 10)
        self.assertEqual(berth.generate(TALE, PROMPT, 20, temperature=0, threads=1, ctx=128), text)
        tokens = self.model.encode(PROMPT)
        self.assertEqual(self.model.tokens[: len(tokens)], tokens)
        self.model.reset()
        self.model.feed_tokens(tokens)
        self.assertEqual("".join(self.model.generate(n=20)), text)

    def test_it_stops_where_it_is_told(self):
        text = "".join(self.model.generate(PROMPT, 30))
        word = text.split()[3]
        self.model.reset()
        self.assertEqual("".join(self.model.generate(PROMPT, 30, stop=[word])), text[: text.index(word)])

    def test_conversations(self):
        model = self.model
        model.feed(PROMPT)
        model.mark()
        first = [model.next().token for _ in range(8)]
        saved = model.save()
        after = [model.next().token for _ in range(4)]
        model.rewind()
        self.assertEqual([model.next().token for _ in range(8)], first)
        fork = model.fork()
        self.assertEqual([fork.next().token for _ in range(4)], after)
        self.assertEqual([model.next().token for _ in range(4)], after)
        other = berth.Generator(TALE, ctx=96, temperature=0, threads=1)
        other.restore(saved)
        logits = other.logits()
        self.assertEqual((logits.dtype, int(numpy.argmax(logits))), (numpy.dtype("f4"), after[0]))
        self.assertEqual([other.next().token for _ in range(4)], after)
        other.cancel()
        with self.assertRaises(berth.Cancelled):
            other.next()
        other.next()
        other.close()
        with self.assertRaisesRegex(berth.InvalidArgument, "closed"):
            other.next()
        info = model.info()
        self.assertEqual((info["architecture"], info["ctx"]), ("llama", 128))
        self.assertEqual(model.arena_size, info["arena_size"])

    def test_a_chat(self):
        answer = "".join(self.model.chat([{"role": "user", "content": PROMPT}], n=8))
        before = len(self.model.tokens)
        "".join(self.model.chat([("user", PROMPT), ("assistant", answer), ("user", "Go on.")], n=4))
        self.assertGreater(len(self.model.tokens), before)

    def test_what_is_wrong_is_said(self):
        for call in (lambda: self.model.feed(3), lambda: self.model.feed_tokens(["a"]), lambda: self.model.chat([3]),
                     lambda: self.model.feed_tokens([10**9]), lambda: self.model.feed_tokens([-1]),
                     lambda: self.model.restore(b"abc"), lambda: self.model.sample(temperature="hot"),
                     lambda: self.model.rewind(), lambda: self.model.chat([("user", None)]),
                     lambda: berth.Generator(TALE, kv="f99"), lambda: berth.Generator(TALE, ctx=-1),
                     lambda: berth.Embedder(TALE)):
            with self.assertRaises((berth.Error, TypeError, OverflowError)):
                call()
        with self.assertRaises(berth.DoesNotFit):
            self.model.feed("a long tale " * 100)
