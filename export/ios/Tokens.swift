// What a file of `keras-vanilla export --outputs alignment confidence` says of each token of a
// translation. Translator.swift needs this file.
import Foundation

/// A piece of a word: its text, often with the space before it; the range of the text it was
/// translated from to which the model attends most, in UTF-16 code units of the whole text as
/// in `NSRange`, empty for none; and its probability. `nil` is what the file does not say.
struct Token: Equatable, Sendable {
  let text: String
  let source: Range<Int>?
  let confidence: Float?

  func moved(by shift: Int) -> Token {
    let moved = source.map { $0.lowerBound + shift..<$0.upperBound + shift }
    return Token(text: text, source: moved, confidence: confidence)
  }
}

/// What a model gives of its tokens; empty where the file does not say it.
struct TokenOutput {
  let ends, spans: [Int32]
  let confidence: [Float]

  /// The tokens that have text, from the bytes of a sentence and of its translation.
  func tokens(source: [UInt8], text: [UInt8]) -> [Token] {
    let ends = self.ends.map(Int.init)
    return zip([0] + ends, ends).enumerated().filter { $0.element.0 < $0.element.1 }.map {
      (i, place) in
      Token(
        text: String(decoding: text[place.0..<place.1], as: UTF8.self),
        source: spans.isEmpty ? nil : range(of: spans[2 * i], spans[2 * i + 1], in: source),
        confidence: confidence.isEmpty ? nil : confidence[i])
    }
  }

  private func range(of begin: Int32, _ end: Int32, in octets: [UInt8]) -> Range<Int> {
    let place = { (end: Int32) in
      String(decoding: octets.prefix(Int(end)), as: UTF8.self).utf16.count
    }
    return place(begin)..<place(end)
  }
}
