/*
 * NATS refuses a stream if two of its subjects match the same message.
 */

/**
 * Disjoint subjects that together match everything the given subjects match. They match more only where two given
 * subjects overlap and neither contains the other: `a.*` and `*.b` become `*.*`.
 * @param subjects With `*`, and `>` at the end.
 */
export function disjointSubjects(subjects: readonly string[]): string[] {
  const disjoint: string[] = []
  for (const subject of subjects) {
    let joined = subject
    for (let at = 0; at < disjoint.length; ) {
      const other = disjoint[at] as string
      if (overlap(joined, other)) {
        joined = join(joined, other)
        disjoint.splice(at, 1)
        at = 0
      } else at++
    }
    disjoint.push(joined)
  }
  return disjoint.sort()
}

function overlap(one: string, other: string): boolean {
  const [words, others] = [one.split('.'), other.split('.')]
  for (let at = 0; at < words.length && at < others.length; at++) {
    const [word, otherWord] = [words[at], others[at]]
    if (word === '>' || otherWord === '>') return true
    if (word !== otherWord && word !== '*' && otherWord !== '*') return false
  }
  return words.length === others.length
}

/** The narrowest subject that contains two overlapping ones. */
function join(one: string, other: string): string {
  const [words, others] = [one.split('.'), other.split('.')]
  const joined: string[] = []
  for (const [at, word] of words.entries()) {
    if (word === '>' || others[at] === '>') return [...joined, '>'].join('.')
    joined.push(word === others[at] ? word : '*')
  }
  return joined.join('.')
}
