import { isReserved } from './reserved-keys.js'

/** FNV-1a, 32 bits: a few lines in any language, so that other programs find the partition of a key. */
const FNV_OFFSET_BASIS = 0x811c9dc5
const FNV_PRIME = 0x01000193

const encoder = new TextEncoder()

/** How keys are divided; equal on all nodes of a system. */
export interface Partitioning {
  /** Number of partitions. */
  readonly count: number
  /** Keys with the same first words have the same partition: so many words. */
  readonly words: number
}

/** The partition of keys with these first words: the FNV-1a hash of their UTF-8 bytes, modulo the number of partitions. */
export function partitionOfWords(firstWords: string, count: number): number {
  let hash = FNV_OFFSET_BASIS
  for (const byte of encoder.encode(firstWords)) hash = Math.imul(hash ^ byte, FNV_PRIME)
  return (hash >>> 0) % count
}

/** The partition of a key. */
export function partitionOfKey(key: string, { count, words }: Partitioning): number {
  return partitionOfWords(firstWordsOf(key, words), count)
}

/** The first words of a key, dots included; the whole key if it has no more words. */
export function firstWordsOf(key: string, words: number): string {
  let end = -1
  for (let word = 0; word < words; word++) {
    end = key.indexOf('.', end + 1)
    if (end < 0) return key
  }
  return key.slice(0, end)
}

/** The first words that all keys of a pattern have; `undefined` when they may differ. */
export function sharedWordsOf(pattern: string, words: number): string | undefined {
  const first = firstWordsOf(pattern, words)
  return /(?:^|\.)[*#](?:\.|$)/.test(first) ? undefined : first
}

/** `false` when it is sure that no key matches both patterns: literal words at the same place differ. */
export function mayOverlap(one: string, other: string): boolean {
  if (isReserved(one) !== isReserved(other)) return false
  const [words, otherWords] = [one.split('.'), other.split('.')]
  for (let at = 0; at < Math.max(words.length, otherWords.length); at++) {
    const [word, otherWord] = [words[at], otherWords[at]]
    if (word === '#' || otherWord === '#') return true
    if (word === undefined || otherWord === undefined) return false
    if (word !== otherWord && word !== '*' && otherWord !== '*') return false
  }
  return true
}

/** Namespace of a partition at the broker: other programs publish there. */
export function namespaceOf(namespace: string, partition: number, count: number): string {
  return `${namespace}-p${partition}of${count}`
}
