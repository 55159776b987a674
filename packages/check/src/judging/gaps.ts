import type { Knowledge } from './known.js'
import { type Place, placeOf } from './place.js'
import type { Selection } from './record.js'

/** A gap as it was told. */
export interface Told {
  readonly reason: string
  readonly pattern: string
  readonly atMs: number
  /** Of the answer that told it; missing if the listen was live. */
  readonly answered?: { readonly asked: Selection; readonly position: string | undefined }
  /** Whether the connection, or one before it, had stalled. */
  readonly hasStalled: boolean
}

/** Says why the reason of a gap cannot be true, or `undefined`. */
export function whyUntrue(told: Told, knowledge: Knowledge): string | undefined {
  const { reason, pattern, atMs, answered } = told
  const { rules } = knowledge
  const since = placeOf(answered?.asked.since)
  const position = placeOf(answered?.position)
  switch (reason) {
    case 'epoch-changed':
      if (rules.log === 'none') return 'there is no log'
      if (since !== undefined && position === undefined) return 'the answer has no position of another log'
      if (since !== undefined && since.epoch === position?.epoch)
        return `the position ${answered?.position} is of the same`
      // One log for all, that survives: nothing but the loss of the data begins another.
      if (rules.log === 'shared' && rules.isDurable && !knowledge.hadFault(atMs, ['broker-data']))
        return 'the log was not lost'
      return undefined
    case 'no-history':
      return knowledge.isCovered(pattern) ? 'all keys of the pattern are logged' : undefined
    case 'history-expired':
      return whyNotExpired(told, since, knowledge)
    case 'broker-lost':
      // Unless the log has lost its end: [P-8.4].
      if (rules.log === 'shared' && knowledge.isCovered(pattern) && !knowledge.hadFault(atMs, ['broker-data']))
        return 'the log has what was missed'
      return knowledge.hadFault(atMs, ['broker', 'broker-data', 'broker-links', 'peer-links', 'node'])
        ? undefined
        : 'nothing had touched the broker or the links'
    case 'slow-consumer':
      return told.hasStalled ? undefined : 'the listener had not stalled'
    default:
      // `limit`: long replays come in pages instead [P-8.4].
      return 'no server gives this reason here'
  }
}

function whyNotExpired({ atMs, answered }: Told, since: Place | undefined, knowledge: Knowledge): string | undefined {
  const { messageCount, ageMs } = knowledge.rules.keeps
  if (atMs > ageMs) return undefined
  const [epoch, offset] =
    since === undefined ? [placeOf(answered?.position)?.epoch ?? '', -1] : [since.epoch, since.offset]
  const count = knowledge.countAfter(epoch, offset, atMs)
  return count < messageCount ? `at most ${count} messages came after it, and the log holds ${messageCount}` : undefined
}
