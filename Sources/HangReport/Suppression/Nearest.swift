/// The candidate that `word` was probably meant to be.
package func nearest(to word: String, in candidates: [String]) -> String? {
  let word = Array(word.lowercased().utf8)
  guard word.count <= 64 else { return nil }
  let scored = candidates.map { candidate in
    (candidate, distance(word, Array(candidate.lowercased().utf8)))
  }
  guard let best = scored.min(by: { $0.1 < $1.1 }) else { return nil }
  if best.1 <= max(1, best.0.utf8.count / 3) { return best.0 }
  let begun = candidates.filter { Array($0.utf8).starts(with: word) }
  return word.count >= 2 && begun.count == 1 ? begun[0] : nil
}

/// Damerau and Levenshtein's: insertions, deletions, replacements and swapped neighbours.
private func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
  var rows = [Array(0...b.count)]
  for i in 0..<a.count {
    var row = [i + 1]
    for j in 0..<b.count {
      var best = min(row[j] + 1, rows[i][j + 1] + 1, rows[i][j] + (a[i] == b[j] ? 0 : 1))
      if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
        best = min(best, rows[i - 1][j - 1] + 1)
      }
      row.append(best)
    }
    rows.append(row)
  }
  return rows[a.count][b.count]
}
