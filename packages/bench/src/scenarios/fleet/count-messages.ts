import { byClient, type FleetLog, type Hole, type Publication, type UserRecord } from './log.js'

/** The messages that users should have got. */
export interface MessageCounts {
  readonly expectedCount: number
  /** Missing, and the listener was told so. */
  readonly missedInGapCount: number
  readonly lost: readonly LostMessage[]
}

/** A message that a user should have got and did not, without a told gap. */
export interface LostMessage {
  readonly client: string
  readonly key: string
  readonly number: number
  readonly createdUs: number
}

/** Counts the messages that arose at times that count. */
export function countMessages(log: FleetLog, isCounted: (createdUs: number) => boolean): MessageCounts {
  let expectedCount = 0
  let missedInGapCount = 0
  const lost: LostMessage[] = []
  const gapsOf = byClient(log.gaps)
  for (const user of log.users) {
    const gaps = gapsOf.get(user.client) ?? []
    for (const key of user.keys) {
      const publications = log.publications.get(key) ?? []
      for (let number = firstExpected(user, key, publications); number < publications.length; number++) {
        const publication = publications[number]
        if (publication?.isAccepted !== true || !isCounted(publication.createdUs)) continue
        expectedCount++
        const missing = missingAt(user, key, number)
        if (missing === undefined) continue
        const { createdUs } = publication
        const isTold = ({ atUs }: { readonly atUs: number }) =>
          atUs >= missing.beforeUs && atUs <= missing.afterUs && createdUs <= atUs
        if (gaps.some(isTold)) missedInGapCount++
        else lost.push({ client: user.client, key, number, createdUs })
      }
    }
  }
  return { expectedCount, missedInGapCount, lost }
}

/** A user gets all messages from its first one on, and those that were published after its listen was accepted. */
function firstExpected(user: UserRecord, key: string, publications: readonly Publication[]): number {
  const after = publications.findIndex(({ startedUs }) => startedUs !== null && startedUs > user.readyUs)
  const first = user.received.get(key)?.first ?? publications.length
  return Math.min(first, after === -1 ? publications.length : after)
}

/** Times of the arrivals before and after a missing message; `undefined`: it is not missing. */
function missingAt(
  { readyUs, received }: UserRecord,
  key: string,
  number: number,
): Pick<Hole, 'beforeUs' | 'afterUs'> | undefined {
  const own = received.get(key)
  if (own === undefined || number < own.first || number >= own.next) {
    return { beforeUs: readyUs, afterUs: Number.POSITIVE_INFINITY }
  }
  return own.holes.find(({ from, to }) => number >= from && number < to)
}
