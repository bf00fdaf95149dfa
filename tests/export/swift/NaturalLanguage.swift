// What export/ios/Translator.swift uses of Apple's NaturalLanguage, as it is documented.
import Foundation

public enum NLTokenUnit { case word, sentence }

/// Sentences begin after ". ", "! " and a Chinese or Japanese full stop.
public final class NLTokenizer {
  public var string: String?

  public init(unit: NLTokenUnit) {}

  public func tokens(for range: Range<String.Index>) -> [Range<String.Index>] {
    let text = string!
    var (tokens, start) = ([Range<String.Index>](), range.lowerBound)
    var index = start
    while index < range.upperBound {
      let next = text.index(after: index)
      let isSpace = next < range.upperBound && text[next] == " "
      if text[index] == "。" || (".!".contains(text[index]) && isSpace) {
        tokens.append(start..<next)
        start = text[next...].firstIndex { !$0.isWhitespace } ?? range.upperBound
      }
      index = next
    }
    return start < range.upperBound ? tokens + [start..<range.upperBound] : tokens
  }
}
