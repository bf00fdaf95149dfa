// What speaks against a translation. Translator.swift needs this file.
import Foundation

/// A reason to look again; no proof: a name may stay as it is, and "20" may become "vingt".
enum Doubt: String, Sendable {
  /// The geometric mean of its tokens' probabilities is below 0.6.
  case unlikely
  /// A number above 12, a web or an e-mail address of the text is not in it.
  case missing
  /// Its letters are those of the text.
  case unchanged
  /// The model's vocabulary has less than half of the text.
  case unknown
}

private let address =
  #"(?:https?://|www\.)[^\s<>]*[^\s<>.,;:!?'"“”’»()\[\]]"#
  + #"|[^\s@<>()\[\],;:'"“”«]+@[^\s@<>]+\.[A-Za-z]+"#
private let thousands =
  "(?<![0-9])[0-9]{1,3}(?:[.,'’ \u{a0}\u{202f}][0-9]{3})+(?![0-9])"
private let number = "(?<![0-9])(?:[0-9]{3,}|[2-9][0-9]|1[3-9])(?![0-9])"

/// The doubts of a sentence; `probability` and `known` are outputs of the file, and `nil` in
/// files of versions up to 0.8.0.
func doubts(
  source: String, translation: String, probability: Float? = nil, known: Float? = nil
) -> [Doubt] {
  let isThere = ranges(of: address, in: source).allSatisfy {
    translation.contains(source[$0])
  }
  let words = replacing(address, in: source) { _ in "" }
  let isSame = letters(of: source) == letters(of: translation)
  let found: [(Doubt, Bool)] = [
    (.unlikely, probability.map { $0 < 0.6 } ?? false),
    (.missing, !isThere || !numbers(in: source).isSubset(of: numbers(in: translation))),
    (.unchanged, isSame && !letters(of: words).isEmpty),
    (.unknown, known.map { $0 < 0.5 } ?? false),
  ]
  return found.filter { $0.1 }.map { $0.0 }
}

/// The numbers above 12, without separators of thousands.
private func numbers(in text: String) -> Set<String> {
  let plain = replacing(thousands, in: text) { match in
    match.filter { ("0"..."9").contains($0) }
  }
  return Set(ranges(of: number, in: plain).map { String(plain[$0]) })
}

private func ranges(of pattern: String, in text: String) -> [Range<String.Index>] {
  let expression = try! NSRegularExpression(pattern: pattern)
  let whole = NSRange(text.startIndex..., in: text)
  return expression.matches(in: text, range: whole).map { Range($0.range, in: text)! }
}

private func replacing(
  _ pattern: String, in text: String, by change: (String) -> String
) -> String {
  var (result, end) = ("", text.startIndex)
  for range in ranges(of: pattern, in: text) {
    result += text[end..<range.lowerBound] + change(String(text[range]))
    end = range.upperBound
  }
  return result + text[end...]
}

private func letters(of text: String) -> String {
  text.replacingOccurrences(of: #"\P{L}+"#, with: "", options: .regularExpression)
    .lowercased()
}
