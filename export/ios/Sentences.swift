// Texts to sentences, as all callers of keras_vanilla cut them; a part of Translator.swift.
import Foundation

// An end mark, closing quotes, white space, opening quotes or a dash, and a word; Chinese,
// Japanese, Khmer and Burmese marks need no space after them.
private let end =
  #"[.!?…؟۔।॥։።](?:\s?»|["'”’“›«‹)\]])*\s+(?=(?:["'“‘„‚«»‹(\[¿¡–—-]\s?)*[\p{L}\p{N}_])"#
  + #"|[。！？｡။។]+[」』”’）]*\s*(?=\S)"#
private let needsNoSpace = #"[。！？｡။។]+[」』”’）]*\s*"#
private let longestWord = 40  // before a full stop; longer ones are not abbreviations
private let beforeWord = #"^(?i)["'’“‘„‚«»‹(\[¿¡]*(?:(?:[dl]|dell|all)['’])?"#
// One letter, letters between full stops, or a short number (German "am 5. Mai").
private let short = #"\p{L}|\p{L}{1,4}(?:\.-?\p{L}{1,4})+|\p{Nd}{1,2}"#
private let counted = #"\p{Nd}+|[\p{L}\p{N}_]\."#
// An abbreviation with a capital here is another word without it; the others are found in
// any case.
private let abbreviations = words(
  """
  Adm Amb approx aprox Atty av avv bd bijv boul Brig bzgl bzw ca Capt Cdr Cdt cf
  Cmdr Cne Col Cpl dhr dipl dott dr dra drs dt dña ehem ej engl env evtl exkl fr
  frz Ft geb Gen gest ggf Gov Gén Hon hr hrn ing inkl Insp Lic Lt Maj Mdm Messrs
  mevr Mgr mio mlle mlles MM mme mmes mr mrd mrs ms Mt Mx Pr Pres prof Profs Pvt
  Rep Rev röm Sen Sgt Sig sog sr sra sres srta St Ste Supt tsd ud uds vgl viz vs
  zzgl österr
  """)
private let beforeNumber = words(
  """
  abb abs al alt anh anm app art arts aufl bd bde bl blz cap ch chap chaps col
  cols ed eds eq eqs est ext fasc fig figs fn hab hg inv jg kap lfd lib max min
  mind no nos nr núm op pag pagg par pos pp pág págs rd ref refs rev rn rs réf sec
  secs sect str tab tel tit tél ver vers vol vols ziff zit éd
  """)
private let months = words(
  """
  jan janv ene gen feb febr fév févr mär mrz mar mrt apr avr abr jun jul juil aug
  sep sept okt oct ott nov dez dec déc dic
  """)
private let day = #"\p{Nd}{1,2}(?:\.|er|st|nd|rd|th)?"#
private let hour = #"(?i)[ap]\.m"#
private let number = #"\p{Nd}.*|[IVXLC]{2,}"#
// Words that continue a time of day (weekdays, time zones) or the name of a company.
private let afterHour = "[A-Z]{2,5}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
private let afterName = "Inc|Ltd|Corp|Co|LLC|LLP|GmbH|AG"

/// The sentences of each line, with the white space after them.
func sentences(of text: String) -> [String] {
  let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
  return lines.enumerated().flatMap { index, line in
    sentences(ofLine: String(line) + (index < lines.count - 1 ? "\n" : ""))
  }
}

private func sentences(ofLine line: String) -> [String] {
  var (cuts, rest) = ([line.startIndex], line.startIndex..<line.endIndex)
  while let range = line.range(of: end, options: .regularExpression, range: rest) {
    if isEnd(range, in: line) { cuts.append(range.upperBound) }
    rest = range.upperBound..<line.endIndex
  }
  cuts.append(line.endIndex)
  return zip(cuts, cuts.dropFirst()).map { String(line[$0..<$1]) }.filter { !$0.isEmpty }
}

private func isEnd(_ range: Range<String.Index>, in line: String) -> Bool {
  let ended = String(line[range])
  if ended.isAll(needsNoSpace) { return true }
  let rest = range.upperBound..<line.endIndex
  guard let next = line.range(of: #"[\p{L}\p{N}_]+"#, options: .regularExpression, range: rest)
  else { return true }
  let following = String(line[next])
  if following.first?.isLowercase ?? false { return false }
  if !ended.hasPrefix(".") { return !ended.hasPrefix("!") || !following.isAll(afterName) }
  let near = line[..<range.lowerBound].suffix(longestWord).split(whereSeparator: \.isWhitespace)
  let words = ["", ""] + near.map(withoutQuotes)
  let (previous, word) = (words[words.count - 2], words[words.count - 1])
  if word.isAll(hour) { return !following.isAll(afterHour) }
  if word.isAll(short) {  // an end only as in "Bd. 3. Dort"
    let name = previous.hasSuffix(".") ? String(previous.dropLast()) : previous
    return word.first!.isNumber && (previous.isAll(counted) || beforeNumber.has(name))
  }
  if abbreviations.has(word) { return false }
  let isMonth = months.has(word)
  if isMonth && previous.isAll(day) { return false }
  return !((isMonth || beforeNumber.has(word)) && following.isAll(number))
}

private func withoutQuotes(_ word: Substring) -> String {
  word.replacingOccurrences(of: beforeWord, with: "", options: .regularExpression)
}

private func words(_ list: String) -> Set<String> {
  Set(list.split(whereSeparator: \.isWhitespace).map(String.init))
}

extension String {
  fileprivate func isAll(_ pattern: String) -> Bool {
    range(of: "^(?:\(pattern))$", options: .regularExpression) != nil
  }
}

extension Set<String> {
  fileprivate func has(_ word: String) -> Bool {
    contains(word) || contains(word.lowercased())
  }
}
