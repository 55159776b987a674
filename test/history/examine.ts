import { matches } from 'webmq-client/protocol'
import type { Diary } from './listener.js'
import { isLater, type Place, placeOf } from './place.js'
import type { Published } from './publisher.js'

/** What became of a run. */
export interface Findings {
  publishedCount: number
  acceptedCount: number
  /** Messages that subscriptions were given. */
  deliveredCount: number
  replayedCount: number
  /** Accepted messages that a subscription did not get, with a gap told in their place. */
  missedCount: number
  gapCount: number
  /** Of these, those that say that the log is another one. */
  epochChangedCount: number
  /** Listens that were answered with `recovered`. */
  recoveredCount: number
  /** Missed in silence, given twice, given out of order, given before the listen began; in words, the first few. */
  readonly violations: string[]
}

const MAX_VIOLATIONS = 10
/** Between the clocks of nodes and their broker, on one machine. */
const CLOCK_SLACK_MS = 5

/** What is known about the log. */
export interface LogFacts {
  /** Whether it holds everything that was published: then whoever asks for the last N gets N, if there are as many. */
  readonly isComplete: boolean
}

/**
 * Holds what every subscription was told against what was published.
 * @param publishers What each of them has published; its index is its number.
 */
export function examine(
  publishers: readonly (readonly Published[])[],
  diaries: readonly Diary[],
  { isComplete }: LogFacts,
): Findings {
  const all = publishers.flat()
  const findings: Findings = {
    publishedCount: all.length,
    acceptedCount: all.filter(({ outcome }) => outcome === 'accepted').length,
    deliveredCount: 0,
    replayedCount: 0,
    missedCount: 0,
    gapCount: 0,
    epochChangedCount: 0,
    recoveredCount: 0,
    violations: [],
  }
  const places = new Map<string, string>()
  for (const [index, diary] of diaries.entries()) {
    const isJoining = diaries.some((other) => other !== diary && other.pattern === diary.pattern)
    const violate = (text: string) => {
      if (findings.violations.length < MAX_VIOLATIONS)
        findings.violations.push(`subscription ${index} (${diary.pattern}, ${JSON.stringify(diary.start)}): ${text}`)
    }
    count(diary, findings)
    examinePlaces(diary, publishers, places, violate)
    for (const [publisher, published] of publishers.entries()) {
      const byKey = new Map<string, number[]>()
      for (const [number, { key }] of published.entries()) {
        if (matches(diary.pattern, key)) byKey.set(key, [...(byKey.get(key) ?? []), number])
      }
      for (const [key, numbers] of byKey) {
        findings.missedCount += examineStream(
          { diary, isJoining, publisher, key, numbers, published, isComplete },
          violate,
        )
      }
    }
  }
  return findings
}

function count({ entries }: Diary, findings: Findings): void {
  for (const entry of entries) {
    if (entry.what === 'gap') {
      findings.gapCount++
      findings.epochChangedCount += Number(entry.gap.reason === 'epoch-changed')
    } else if (entry.what === 'ready') findings.recoveredCount += Number(entry.result.recovered)
    else {
      findings.deliveredCount++
      findings.replayedCount += Number(entry.message.replayed)
    }
  }
}

/** Positions of a subscription rise within an epoch, and everybody sees the same message at the same position. */
function examinePlaces(
  { entries }: Diary,
  publishers: readonly (readonly Published[])[],
  places: Map<string, string>,
  violate: (text: string) => void,
): void {
  let previous: Place | undefined
  for (const entry of entries) {
    if (entry.what === 'gap' || entry.what === 'ready') {
      // After a gap, or on another node, a log may be another one; what follows has an order of its own.
      if (entry.what === 'gap') previous = undefined
      continue
    }
    const { publisher, number } = entry.payload
    const place = placeOf(entry.message.position)
    if (place === undefined) continue
    const name = `${publisher}/${number}`
    const text = entry.message.position ?? ''
    const other = places.get(text)
    if (other !== undefined && other !== name) violate(`${name} stands at ${text}, where others see ${other}`)
    places.set(text, name)
    const told = placeOf(publishers[publisher]?.[number]?.position)
    if (told?.epoch === place.epoch && told.offset !== place.offset) {
      violate(`${name} came at ${text}, and its publisher was told ${publishers[publisher]?.[number]?.position}`)
    }
    if (previous !== undefined && previous.epoch === place.epoch && !isLater(place, previous)) {
      violate(`${name} came at ${text}, after offset ${previous.offset}`)
    }
    previous = place
  }
}

/** What one subscription should have been given of one publisher and key. */
interface Stream extends LogFacts {
  readonly diary: Diary
  /** Others listen with its pattern, perhaps on its node. */
  readonly isJoining: boolean
  readonly publisher: number
  readonly key: string
  /** Those of the publisher that have this key. */
  readonly numbers: readonly number[]
  readonly published: readonly Published[]
}

/** Returns how many were missed with a gap in their place. */
function examineStream(stream: Stream, violate: (text: string) => void): number {
  const { diary, isJoining, publisher, key, numbers, published } = stream
  const must = numbers.findIndex((number) => isOwed(stream, published[number]))
  const readyAtMs = diary.entries.flatMap((entry) => (entry.what === 'ready' ? [entry.atMs] : []))
  // Published, or published again, while a listen was answered: without a log it may come or not, also behind later ones.
  const isConcurrent = ({ beganAtMs, settledAtMs, position }: Published) =>
    position === undefined && readyAtMs.some((atMs) => beganAtMs <= atMs && atMs < settledAtMs)
  const receivedAtMs = new Map<number, number>()
  let next = 0
  let hasBegun = false
  let isGapTold = false
  let logAnewAtMs = Number.NEGATIVE_INFINITY
  let missedCount = 0
  const miss = (from: number, to: number, before: string) => {
    for (const number of numbers.slice(from, to)) {
      const record = published[number]
      if (record?.outcome !== 'accepted' || receivedAtMs.has(number) || isConcurrent(record)) continue
      missedCount++
      if (!isGapTold) violate(`${key} ${publisher}/${number} is missing before ${before}, and no gap was told`)
    }
  }
  for (const entry of diary.entries) {
    if (entry.what === 'gap') {
      isGapTold = true
      if (entry.gap.reason === 'epoch-changed') logAnewAtMs = entry.atMs
    }
    if (entry.what !== 'message' || entry.payload.publisher !== publisher || entry.message.key !== key) continue
    const { number } = entry.payload
    const [at, record] = [numbers.indexOf(number), published[number]]
    if (at < 0 || record === undefined) {
      violate(`${key} ${publisher}/${number} was never published`)
      continue
    }
    // What was on its way when a log was lost is published again into the next one, which has forgotten its id.
    const isRetried = logAnewAtMs > diary.askedAtMs && record.settledAtMs > diary.askedAtMs
    if (!hasBegun && !isRetried && isTooOld(diary, isJoining, record))
      violate(`${key} ${publisher}/${number} is from before the listen`)
    const beforeAtMs = receivedAtMs.get(number) ?? Number.POSITIVE_INFINITY
    // With a log, ids are lost too: what was on its way then is published again, and given again, after a gap that says so.
    const isAgain = logAnewAtMs > beforeAtMs && record.settledAtMs > beforeAtMs
    // Without a log nothing says where a listener was when it moved: its next node may be behind the one it comes from.
    const isBehind = isGapTold && entry.message.position === undefined
    const isTwice = receivedAtMs.has(number)
    const isOld = isConcurrent(record) ? isTwice : at < next
    if (isOld && !isAgain && !isBehind) {
      violate(
        `${key} ${publisher}/${number} came ${isTwice ? 'twice' : `after ${numbers[next - 1]}`}, at ${entry.message.position}`,
      )
      continue
    }
    if (isConcurrent(record)) {
      receivedAtMs.set(number, entry.atMs)
      continue
    }
    if (hasBegun) miss(next, at, `${number}`)
    else if (must >= 0) miss(must, at, `${number}, the first that came`)
    receivedAtMs.set(number, entry.atMs)
    next = at + 1
    hasBegun = true
    isGapTold = false
  }
  const first = hasBegun ? next : must
  if (first >= 0) miss(first, numbers.length, 'the end')
  return missedCount
}

/** Whether a message belongs to a subscription from its first answer on, so that it has to come. */
function isOwed({ diary: { start, entries }, isComplete }: Stream, record: Published | undefined): boolean {
  const ready = entries.find((entry) => entry.what === 'ready')
  if (record === undefined || ready?.what !== 'ready') return false
  const { result, atMs } = ready
  if (start.from === 'last' && isComplete && result.gap === undefined && result.replayed < start.count) return true
  // What is asked for is reckoned from when the server is asked, which is before it has answered. Its clock may be another.
  const fromMs = start.from === 'time' && isComplete ? atMs - start.rewindMs + CLOCK_SLACK_MS : atMs
  if (record.beganAtMs > fromMs) return true
  const [place, begin] = [placeOf(record.position), placeOf(result.position)]
  return place !== undefined && begin !== undefined && place.epoch === begin.epoch && isLater(place, begin)
}

/** Whether a message is from before a subscription that wants only what comes after its beginning. */
function isTooOld(
  { start, entries, askedAtMs, isFirst }: Diary,
  isJoining: boolean,
  record: Published | undefined,
): boolean {
  const ready = entries.find((entry) => entry.what === 'ready')
  if (start.from !== 'now' || record === undefined || ready?.what !== 'ready') return false
  const [place, begin] = [placeOf(record.position), placeOf(ready.result.position)]
  if (place !== undefined && begin !== undefined && place.epoch === begin.epoch) return !isLater(place, begin)
  // One that joins another of its pattern begins where that one is, and not at the end of the log. Without a log that is
  // where its node is: accepted messages may be on their way to it.
  return isFirst && !isJoining && record.settledAtMs < askedAtMs
}
