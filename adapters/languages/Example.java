// A complete byte-level BPE tokenizer that follows the protocol of ../PROTOCOL.md: trainer, encoder, decoder, streams
// and files. It shares no code with the rest of this project. It needs a JDK (17 or newer) but no build:
//
//     pytest conformance --adapter "cmd:java adapters/languages/Example.java"
//
// Below: the tokenizer, its trainer, its stream, its files; then the protocol; then JSON, which Java lacks.
// A token is a string with one char, 00 to FF, for each byte. Such strings sort in the order of their bytes.

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

public class Example {
    record Pair(String left, String right) implements Comparable<Pair> {
        String joined() {
            return left + right;
        }

        public int compareTo(Pair other) {
            int order = left.compareTo(other.left);
            return order != 0 ? order : right.compareTo(other.right);
        }
    }

    static final String GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    static final List<String> BYTES = IntStream.range(0, 256).mapToObj(b -> String.valueOf((char) b)).toList();

    /** Compile a pattern as Python's regex reads it: Unicode classes, and $ before a last line feed only. */
    static Pattern compile(String pattern) {
        return Pattern.compile(pattern == null ? GPT2 : pattern, Pattern.UNICODE_CHARACTER_CLASS | Pattern.UNIX_LINES);
    }

    /** Text → token. `String.getBytes` would write "?" for a lone surrogate; an encoder rejects it. */
    static String bytesOf(CharSequence text) {
        try {
            return ISO_8859_1.decode(UTF_8.newEncoder().encode(CharBuffer.wrap(text))).toString();
        } catch (CharacterCodingException error) {
            throw new IllegalArgumentException("the text holds a lone surrogate");
        }
    }

    /** Bytes → text, one U+FFFD for each maximal subpart. `new String` gives only one for the bytes of a surrogate. */
    static String textOf(String bytes) {
        StringBuilder text = new StringBuilder();
        for (int here = 0; here < bytes.length(); ) {
            int first = bytes.charAt(here++);
            int more = first < 0x80 ? 0 : first >= 0xC2 && first < 0xE0 ? 1 : first >= 0xE0 && first < 0xF0 ? 2
                    : first >= 0xF0 && first < 0xF5 ? 3 : -1;
            int low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
            int high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
            int code = more > 0 ? first & (0x3F >> more) : first;
            while (more > 0 && here < bytes.length() && low <= bytes.charAt(here) && bytes.charAt(here) <= high) {
                code = code << 6 | bytes.charAt(here++) & 0x3F;
                low = 0x80;
                high = 0xBF;
                more--;
            }
            text.appendCodePoint(more == 0 ? code : 0xFFFD);
        }
        return text.toString();
    }

    /** The pre-tokens of a text, in order; text that the pattern does not match is a pre-token, too. */
    static List<String> split(String text, Pattern pattern) {
        List<String> pieces = new ArrayList<>();
        int end = 0;
        for (var match = pattern.matcher(text); match.find(); ) {
            if (match.end() == match.start()) continue;
            if (match.start() > end) pieces.add(text.substring(end, match.start()));
            pieces.add(match.group());
            end = match.end();
        }
        if (end < text.length()) pieces.add(text.substring(end));
        return pieces;
    }

    /** The longest special token at a position of a text; null if there is none. */
    static String specialAt(String text, int here, List<String> longestFirst) {
        for (String token : longestFirst) if (text.startsWith(token, here)) return token;
        return null;
    }

    static List<String> longestFirst(List<String> specialTokens) {
        return new LinkedHashSet<>(specialTokens).stream().filter(token -> !token.isEmpty())
                .sorted(Comparator.comparing(String::length).reversed()).toList();
    }

    static class Tokenizer {
        final Map<Long, String> vocab;
        final List<Pair> merges;
        final Map<String, Long> ids = new HashMap<>();
        final Map<Pair, Integer> ranks = new HashMap<>();
        final List<String> special;
        final Pattern pattern;
        final boolean cutsBeforeSpaces;

        Tokenizer(Map<Long, String> given, List<Pair> merges, List<String> specialTokens, String pattern) {
            this.vocab = new LinkedHashMap<>(given);
            this.merges = merges;
            this.special = longestFirst(specialTokens);
            this.pattern = compile(pattern);
            this.cutsBeforeSpaces = pattern == null || pattern.equals(GPT2);
            vocab.forEach((id, token) -> ids.putIfAbsent(token, id));
            long next = vocab.keySet().stream().max(Comparator.naturalOrder()).orElse(-1L) + 1;
            for (String text : new LinkedHashSet<>(specialTokens)) {
                if (text.isEmpty() || ids.containsKey(bytesOf(text))) continue;
                ids.put(bytesOf(text), next);
                vocab.put(next++, bytesOf(text));
            }
            BYTES.forEach(this::id);
            for (Pair pair : merges) {
                for (String token : List.of(pair.left, pair.right, pair.joined())) id(token);
                ranks.putIfAbsent(pair, ranks.size());
            }
        }

        long id(String token) {
            Long id = ids.get(token);
            if (id == null) throw new NoSuchElementException("the vocabulary lacks the bytes " + hex(token));
            return id;
        }

        List<Long> encode(String text) {
            List<Long> found = new ArrayList<>();
            int start = 0;
            for (int here = 0; here < text.length(); ) {
                String token = specialAt(text, here, special);
                if (token == null) {
                    here++;
                    continue;
                }
                encodeOrdinary(text.substring(start, here), found);
                found.add(id(bytesOf(token)));
                start = here += token.length();
            }
            encodeOrdinary(text.substring(start), found);
            return found;
        }

        void encodeOrdinary(String text, List<Long> found) {
            for (String piece : split(text, pattern)) for (String token : merge(bytesOf(piece))) found.add(id(token));
        }

        /** Merge the adjacent pair of the lowest rank, the leftmost one on a tie, until none is left. */
        List<String> merge(String bytes) {
            List<String> word = atoms(bytes);
            while (true) {
                int best = Integer.MAX_VALUE;
                int at = -1;
                for (int i = 0; i + 1 < word.size(); i++) {
                    int rank = ranks.getOrDefault(new Pair(word.get(i), word.get(i + 1)), Integer.MAX_VALUE);
                    if (rank < best) {
                        best = rank;
                        at = i;
                    }
                }
                if (at < 0) return word;
                word.set(at, word.get(at) + word.remove(at + 1));
            }
        }

        /** The ids, and for each the code points of the text that it covers; a byte belongs to one of them. */
        Map<String, Object> encodeWithOffsets(String text) {
            List<Integer> owner = new ArrayList<>();
            int[] points = text.codePoints().toArray();
            for (int at = 0; at < points.length; at++) {
                for (int left = bytesOf(Character.toString(points[at])).length(); left > 0; left--) owner.add(at);
            }
            List<Long> found = encode(text);
            List<List<Integer>> offsets = new ArrayList<>();
            int end = 0;
            for (Long id : found) {
                int start = end;
                end += vocab.get(id).length();
                offsets.add(List.of(owner.get(start), owner.get(end - 1) + 1));
            }
            return Map.of("ids", found, "offsets", offsets);
        }

        String decodeBytes(List<Long> some) {
            StringBuilder bytes = new StringBuilder();
            for (Long id : some) {
                if (!vocab.containsKey(id)) throw new NoSuchElementException("unknown id " + id);
                bytes.append(vocab.get(id));
            }
            return bytes.toString();
        }
    }

    static List<String> atoms(String bytes) {
        List<String> word = new ArrayList<>(bytes.length());
        for (int i = 0; i < bytes.length(); i++) word.add(BYTES.get(bytes.charAt(i)));
        return word;
    }

    /** Learn merges: the most frequent pair, the lexicographically greatest on a tie. Count again at every step. */
    static Tokenizer train(String text, int vocabSize, List<String> specialTokens, String pattern) {
        LinkedHashSet<String> names = new LinkedHashSet<>(specialTokens);
        int wanted = vocabSize - 256 - names.size();
        if (wanted < 0) throw new IllegalArgumentException("vocab_size is too small for bytes and special tokens");
        Map<List<String>, Integer> words = new LinkedHashMap<>();
        List<String> special = longestFirst(specialTokens);
        int start = 0;
        for (int here = 0; here <= text.length(); ) {
            String token = here == text.length() ? "" : specialAt(text, here, special);
            if (token == null) {
                here++;
                continue;
            }
            for (String piece : split(text.substring(start, here), compile(pattern))) {
                words.merge(atoms(bytesOf(piece)), 1, Integer::sum);
            }
            start = here += Math.max(token.length(), 1);
        }
        List<Pair> merges = new ArrayList<>();
        while (merges.size() < wanted) {
            Map<Pair, Integer> counts = new HashMap<>();
            words.forEach((word, count) -> {
                for (int i = 0; i + 1 < word.size(); i++) {
                    counts.merge(new Pair(word.get(i), word.get(i + 1)), count, Integer::sum);
                }
            });
            if (counts.isEmpty()) break;
            Pair best = counts.entrySet().stream().max(Map.Entry.<Pair, Integer>comparingByValue()
                    .thenComparing(Map.Entry.comparingByKey())).get().getKey();
            Map<List<String>, Integer> merged = new LinkedHashMap<>();
            words.forEach((word, count) -> merged.merge(replace(word, best), count, Integer::sum));
            words = merged;
            merges.add(best);
        }
        Map<Long, String> vocab = new LinkedHashMap<>();
        for (String token : BYTES) vocab.put((long) vocab.size(), token);
        for (String token : names) vocab.put((long) vocab.size(), bytesOf(token));
        for (Pair pair : merges) vocab.put((long) vocab.size(), pair.joined());
        return new Tokenizer(vocab, merges, specialTokens, pattern);
    }

    static List<String> replace(List<String> word, Pair pair) {
        List<String> out = new ArrayList<>(word.size());
        for (int i = 0; i < word.size(); i++) {
            boolean here = i + 1 < word.size() && word.get(i).equals(pair.left) && word.get(i + 1).equals(pair.right);
            out.add(here ? word.get(i++) + word.get(i) : word.get(i));
        }
        return out;
    }

    /**
     * Encodes a text in chunks. A special token can be incomplete at the end of the held-back text. Before that
     * position, GPT-2's pattern always starts a pre-token at a single space between two other characters.
     */
    static class Stream {
        final Tokenizer tokenizer;
        String held = "";

        Stream(Tokenizer tokenizer) {
            this.tokenizer = tokenizer;
        }

        List<Long> feed(String chunk) {
            held += chunk;
            int cut = settled();
            List<Long> ids = tokenizer.encode(held.substring(0, cut));
            held = held.substring(cut);
            return ids;
        }

        List<Long> close() {
            return tokenizer.encode(held);
        }

        /** Return where the held-back text can be cut: after a special token, or before such a space. */
        int settled() {
            int certain = 0;
            while (certain < held.length() && !mayGrow(certain)) certain++;
            int cut = 0;
            for (int here = 0; here < certain; ) {
                String token = specialAt(held, here, tokenizer.special);
                if (token != null) {
                    cut = here += token.length();
                    continue;
                }
                if (tokenizer.cutsBeforeSpaces && here > 0 && here + 1 < certain && held.charAt(here) == ' '
                        && !white(held.charAt(here - 1)) && !white(held.charAt(here + 1))) cut = here;
                here++;
            }
            return cut;
        }

        boolean mayGrow(int here) {
            int rest = held.length() - here;
            for (String token : tokenizer.special) {
                if (token.length() > rest && held.regionMatches(here, token, 0, rest)) return true;
            }
            return false;
        }

        static boolean white(char c) {
            return WHITE.matcher(String.valueOf(c)).matches();
        }

        static final Pattern WHITE = Pattern.compile("\\s", Pattern.UNICODE_CHARACTER_CLASS);
    }

    /** Text as ids arrive: the bytes of an incomplete character are held back, at most three. */
    static class Detokenizer {
        final Tokenizer tokenizer;
        String held = "";

        Detokenizer(Tokenizer tokenizer) {
            this.tokenizer = tokenizer;
        }

        String feed(long id) {
            held += tokenizer.decodeBytes(List.of(id));
            int cut = held.length();
            for (int back = 1; back <= Math.min(3, held.length()); back++) {
                int first = held.charAt(held.length() - back);
                if (first >= 0x80 && first < 0xC0) continue; // it continues a character
                int size = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
                if (back < size) cut -= back;
                break;
            }
            String text = textOf(held.substring(0, cut));
            held = held.substring(cut);
            return text;
        }

        String close() {
            return textOf(held);
        }
    }

    /** GPT-2's files spell each byte as one character: 68 of them, the invisible ones, as U+0100 and following. */
    static class Gpt2Files {
        static final char[] SPELLING = new char[256];
        static final Map<Character, Character> BYTE = new HashMap<>();

        static {
            char next = 0x100;
            for (char b = 0; b < 256; b++) {
                boolean plain = b > 0x20 && b < 0x7F || b > 0xA0 && b != 0xAD;
                SPELLING[b] = plain ? b : next++;
                BYTE.put(SPELLING[b], b);
            }
        }

        static String spell(String token) {
            StringBuilder spelling = new StringBuilder();
            for (char b : token.toCharArray()) spelling.append(SPELLING[b]);
            return spelling.toString();
        }

        static String unspell(String spelling) {
            StringBuilder token = new StringBuilder();
            for (char c : spelling.toCharArray()) {
                if (!BYTE.containsKey(c)) throw new IllegalArgumentException("no spelling of bytes: " + spelling);
                token.append((char) BYTE.get(c));
            }
            return token.toString();
        }

        static void save(Tokenizer tokenizer, Path folder) throws IOException {
            Map<String, Object> vocab = new LinkedHashMap<>();
            List<String> special = tokenizer.special.stream().map(Example::bytesOf).toList();
            tokenizer.vocab.forEach((id, token) -> vocab.put(special.contains(token) ? textOf(token) : spell(token), id));
            StringBuilder lines = new StringBuilder("#version: 0.2\n");
            for (Pair pair : tokenizer.merges) {
                lines.append(spell(pair.left)).append(' ').append(spell(pair.right)).append('\n');
            }
            Files.writeString(folder.resolve("vocab.json"), Json.write(vocab));
            Files.writeString(folder.resolve("merges.txt"), lines);
        }

        static Tokenizer load(Path vocabPath, Path mergesPath, List<String> specialTokens) throws IOException {
            Map<Long, String> vocab = new TreeMap<>();
            Json.object(Json.parse(Files.readString(vocabPath))).forEach((spelling, id) ->
                    vocab.put((Long) id, specialTokens.contains(spelling) ? bytesOf(spelling) : unspell(spelling)));
            List<Pair> merges = new ArrayList<>();
            String[] lines = Files.readString(mergesPath).split("\r?\n");
            for (int number = 0; number < lines.length; number++) {
                if (lines[number].isEmpty() || number == 0 && lines[0].startsWith("#version")) continue;
                String[] parts = lines[number].split(" ");
                if (parts.length != 2) throw new IllegalArgumentException("merges.txt:" + (number + 1) + ": not two parts");
                merges.add(new Pair(unspell(parts[0]), unspell(parts[1])));
            }
            return new Tokenizer(vocab, merges, specialTokens, null);
        }
    }

    // The protocol

    static class NotClaimed extends RuntimeException {
        NotClaimed(String message) {
            super(message);
        }
    }

    static final List<String> CAPABILITIES = List.of("encode", "decode", "encode_batch", "decode_bytes", "encode_iterable",
            "save", "train", "from_files", "pattern", "train_pattern", "surrogates", "decode_iterable",
            "encode_with_offsets");

    final Map<Integer, Tokenizer> models = new HashMap<>();
    final Map<Integer, Stream> streams = new HashMap<>();
    final Map<Integer, Detokenizer> detokenizers = new HashMap<>();
    int next = 1;

    static String hex(String token) {
        return HexFormat.of().formatHex(token.getBytes(ISO_8859_1));
    }

    static String unhex(Object hex) {
        return new String(HexFormat.of().parseHex((String) hex), ISO_8859_1);
    }

    /** A text is a string, or its code points if it contains surrogates. */
    static String text(Object value) {
        if (value instanceof String string) return string;
        StringBuilder text = new StringBuilder();
        for (Object code : Json.list(Json.object(value).get("code_points"))) text.appendCodePoint(Json.integer(code));
        return text.toString();
    }

    static List<String> texts(Object value) {
        return value == null ? List.of() : Json.list(value).stream().map(Example::text).toList();
    }

    static <T> T kept(Map<Integer, T> all, Object handle) {
        T found = all.get(Json.integer(handle));
        if (found == null) throw new NoSuchElementException("there is nothing with the number " + handle);
        return found;
    }

    <T> Map<String, Object> keep(String what, Map<Integer, T> all, T value) {
        all.put(next, value);
        return Map.of(what, next++);
    }

    Tokenizer load(Map<String, Object> r) {
        Map<Long, String> vocab = new LinkedHashMap<>();
        for (Object row : Json.list(r.get("vocab"))) {
            vocab.put((Long) Json.list(row).get(0), unhex(Json.list(row).get(1)));
        }
        List<Pair> merges = new ArrayList<>();
        for (Object row : Json.list(r.get("merges"))) {
            merges.add(new Pair(unhex(Json.list(row).get(0)), unhex(Json.list(row).get(1))));
        }
        return new Tokenizer(vocab, merges, texts(r.get("special_tokens")), (String) r.get("pattern"));
    }

    static Map<String, Object> table(Tokenizer tokenizer) {
        List<Object> vocab = new ArrayList<>();
        tokenizer.vocab.forEach((id, token) -> vocab.add(List.of(id, hex(token))));
        return Map.of("vocab", vocab, "merges",
                tokenizer.merges.stream().map(pair -> List.of(hex(pair.left), hex(pair.right))).toList());
    }

    static List<Long> ids(Object value) {
        return Json.list(value).stream().map(Long.class::cast).toList();
    }

    Object answer(Map<String, Object> r) throws IOException {
        Object model = r.get("model");
        switch ((String) r.get("op")) {
            case "start":
                Map<String, Object> hello = new LinkedHashMap<>();
                hello.put("protocol", 1);
                hello.put("name", "Example.java");
                hello.put("version", "1.0");
                hello.put("language", "Java " + Runtime.version().feature());
                hello.put("capabilities", CAPABILITIES);
                hello.put("conventions", Map.of());
                hello.put("model", null);
                return hello;
            case "load":
                return keep("model", models, load(r));
            case "train":
                return keep("model", models, train(text(r.get("text")), Json.integer(r.get("vocab_size")),
                        texts(r.get("special_tokens")), (String) r.get("pattern")));
            case "from_files":
                return keep("model", models, Gpt2Files.load(Path.of((String) r.get("vocab_path")),
                        Path.of((String) r.get("merges_path")), texts(r.get("special_tokens"))));
            case "unload":
                models.remove(Json.integer(model));
                return null;
            case "table":
                return table(kept(models, model));
            case "encode":
                return kept(models, model).encode(text(r.get("text")));
            case "encode_batch":
                return texts(r.get("texts")).stream().map(kept(models, model)::encode).toList();
            case "decode":
                return textOf(kept(models, model).decodeBytes(ids(r.get("ids"))));
            case "decode_bytes":
                return hex(kept(models, model).decodeBytes(ids(r.get("ids"))));
            case "save":
                Gpt2Files.save(kept(models, model), Path.of((String) r.get("folder")));
                return null;
            case "encode_with_offsets":
                return kept(models, model).encodeWithOffsets(text(r.get("text")));
            case "stream_open":
                if ("decode_iterable".equals(r.get("method"))) {
                    return keep("stream", detokenizers, new Detokenizer(kept(models, model)));
                }
                return keep("stream", streams, new Stream(kept(models, model)));
            case "stream_feed":
                if (r.get("id") instanceof Long id) {
                    return Map.of("deltas", List.of(kept(detokenizers, r.get("stream")).feed(id)));
                }
                return Map.of("ids", kept(streams, r.get("stream")).feed(text(r.get("text"))));
            case "stream_close":
                Detokenizer open = detokenizers.remove(Json.integer(r.get("stream")));
                if (open != null) return Map.of("deltas", List.of(open.close()), "ended", true);
                List<Long> rest = kept(streams, r.get("stream")).close();
                streams.remove(Json.integer(r.get("stream")));
                return Map.of("ids", rest, "ended", true);
            default:
                throw new NotClaimed(r.get("op") + " is not offered");
        }
    }

    public static void main(String[] arguments) throws IOException {
        OutputStream replies = new PrintStream(System.out, false);
        System.setOut(System.err); // standard output is the protocol's
        Example server = new Example();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line; (line = requests.readLine()) != null; ) {
            Map<String, Object> request = Json.object(Json.parse(line));
            Map<String, Object> reply = new LinkedHashMap<>();
            reply.put("seq", request.get("seq"));
            try {
                reply.put("result", server.answer(request));
            } catch (NotClaimed error) {
                reply.put("not_claimed", error.getMessage());
            } catch (Exception | StackOverflowError error) {
                String type = error.getClass().getSimpleName();
                reply.put("error", Map.of("type", type, "message", String.valueOf(error.getMessage())));
            }
            replies.write((Json.write(reply) + "\n").getBytes(UTF_8));
            replies.flush();
        }
    }

    /** JSON as maps, lists, strings, long integers, booleans and null; other numbers do not occur here. */
    static class Json {
        final String source;
        int here;

        Json(String source) {
            this.source = source;
        }

        static Object parse(String source) {
            return new Json(source).value();
        }

        @SuppressWarnings("unchecked")
        static Map<String, Object> object(Object value) {
            return (Map<String, Object>) value;
        }

        @SuppressWarnings("unchecked")
        static List<Object> list(Object value) {
            return (List<Object>) value;
        }

        static int integer(Object value) {
            return Math.toIntExact((Long) value);
        }

        char next() {
            while (Character.isWhitespace(source.charAt(here))) here++;
            return source.charAt(here);
        }

        boolean took(char wanted) {
            boolean there = next() == wanted;
            if (there) here++;
            return there;
        }

        Object value() {
            switch (next()) {
                case '{':
                    here++;
                    Map<String, Object> object = new LinkedHashMap<>();
                    while (!took('}')) {
                        took(',');
                        next();
                        String key = string();
                        took(':');
                        object.put(key, value());
                    }
                    return object;
                case '[':
                    here++;
                    List<Object> list = new ArrayList<>();
                    while (!took(']')) {
                        took(',');
                        list.add(value());
                    }
                    return list;
                case '"':
                    return string();
                default:
                    int start = here;
                    while (here < source.length() && ",]} \r\n\t".indexOf(source.charAt(here)) < 0) here++;
                    String word = source.substring(start, here);
                    return switch (word) {
                        case "null" -> null;
                        case "true" -> true;
                        case "false" -> false;
                        default -> Long.parseLong(word);
                    };
            }
        }

        String string() {
            StringBuilder text = new StringBuilder();
            for (here++; source.charAt(here) != '"'; here++) {
                char c = source.charAt(here);
                if (c != '\\') {
                    text.append(c);
                    continue;
                }
                char escape = source.charAt(++here);
                int place = "bfnrt".indexOf(escape);
                if (escape == 'u') {
                    text.append((char) Integer.parseInt(source, here + 1, here + 5, 16));
                    here += 4;
                } else {
                    text.append(place < 0 ? escape : "\b\f\n\r\t".charAt(place));
                }
            }
            here++;
            return text.toString();
        }

        static String write(Object value) {
            StringBuilder out = new StringBuilder();
            write(value, out);
            return out.toString();
        }

        static void write(Object value, StringBuilder out) {
            if (value instanceof Map<?, ?> object) {
                String between = "{";
                for (var entry : object.entrySet()) {
                    out.append(between);
                    write(entry.getKey(), out);
                    out.append(':');
                    write(entry.getValue(), out);
                    between = ",";
                }
                out.append(object.isEmpty() ? "{}" : "}");
            } else if (value instanceof List<?> list) {
                out.append('[');
                for (int i = 0; i < list.size(); i++) {
                    if (i > 0) out.append(',');
                    write(list.get(i), out);
                }
                out.append(']');
            } else if (value instanceof String text) {
                out.append('"');
                for (char c : text.toCharArray()) {
                    if (c == '"' || c == '\\') out.append('\\').append(c);
                    else if (c < 0x20 || c > 0x7E) out.append(String.format("\\u%04x", (int) c));
                    else out.append(c);
                }
                out.append('"');
            } else {
                out.append(value);
            }
        }
    }
}
