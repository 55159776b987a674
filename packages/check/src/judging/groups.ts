import { matches } from './keys.js'
import type { Knowledge, Known } from './known.js'
import type { MemberRecord, Membership } from './record.js'
import type { Report } from './violation.js'

/** A node that is silent may count as gone: its last lease was sent up to 3.3 s before, and is valid for 8.3 s. */
const GONE_MS = 5_000

/** One member of a group that has members gets each message whose publish has resolved [P-16.3]. */
export function examineGroups(knowledge: Knowledge, report: Report): void {
  for (const [name, members] of groupsOf(knowledge.record.members)) {
    const counts = new Map<string, number>()
    for (const member of members) {
      for (const { id, key, atMs } of member.tasks) {
        const known = knowledge.messages.get(id)
        if (known === undefined)
          report('alien', atMs, member.name, `a task of ${key} was never published, or not to it`)
        else if (known.key !== key || !matches(member.pattern, key))
          report('wrong-key', atMs, member.name, `${id} of ${known.key} came as a task of ${key}`)
        counts.set(id, (counts.get(id) ?? 0) + 1)
      }
    }
    const stays = new Stays(members, knowledge)
    for (const message of knowledge.messages.values()) {
      const { id, key, ackedAtMs = Number.POSITIVE_INFINITY } = message
      const count = counts.get(id) ?? 0
      const untilMs = isOwed(message, members, knowledge)
      if (count === 0 && (untilMs !== undefined || stays.areOwed(message)))
        report('task-lost', untilMs ?? ackedAtMs, name, `${id} of ${key} came to no member`)
      else if (count > 1 && (untilMs !== undefined || stays.getOnce(message)))
        report('task-twice', untilMs ?? ackedAtMs, name, `${id} of ${key} came to members ${count} times`)
    }
  }
}

/**
 * Whether exactly one of the members must get a message: it was published once, and neither a fault nor a member that came
 * or went was near. Returns by when.
 */
function isOwed(
  { key, attempts, ackedAtMs }: Known,
  members: readonly MemberRecord[],
  knowledge: Knowledge,
): number | undefined {
  const { rules, record } = knowledge
  const [attempt] = attempts
  const [{ pattern } = { pattern: '' }] = members
  if (ackedAtMs === undefined || attempt === undefined || attempts.length > 1 || !matches(pattern, key))
    return undefined
  const fromMs = attempt.sentAtMs - rules.settleMs
  const untilMs = ackedAtMs + rules.deliverWithinMs
  if (untilMs > record.endedAtMs || knowledge.quietMs(fromMs, untilMs) < untilMs - fromMs) return undefined
  const memberships = members.flatMap((member) => member.memberships)
  const isInside = (atMs: number) => atMs >= fromMs && atMs <= untilMs
  if (
    memberships.some(({ fromMs: from, untilMs: until = Number.POSITIVE_INFINITY }) => isInside(from) || isInside(until))
  )
    return undefined
  const isThere = memberships.some(({ fromMs: from, untilMs: until }) => from < fromMs && (until ?? untilMs) >= untilMs)
  return isThere ? untilMs : undefined
}

/**
 * What faults of nodes, links and the broker excuse nothing of: a member that is connected from before a publish to the end
 * of the run is there, whether or not its node answers others for some time.
 */
class Stays {
  readonly #knowledge: Knowledge
  readonly #pattern: string
  /** Memberships that last to the end, and that every node knows since some time. */
  readonly #lasting: readonly Membership[]
  /** Whether all members were on one node all the time, and it was one process: it knows what it has handed over. */
  readonly #areTogether: boolean

  constructor(members: readonly MemberRecord[], knowledge: Knowledge) {
    this.#knowledge = knowledge
    this.#pattern = members[0]?.pattern ?? ''
    const { faults } = knowledge.record
    const memberships = members.flatMap((member) => member.memberships)
    // A node that starts while another one is silent does not know what that one has.
    const hasStarts = faults.some(({ name }) => /^(kill|stop) node/.test(name))
    // Nor does one that was cut off when the member came.
    const real = faults.filter(({ fromMs, untilMs }) => untilMs > fromMs)
    const isCalm = (atMs: number) =>
      real.every(({ fromMs, untilMs }) => atMs < fromMs || atMs > untilMs + knowledge.rules.settleMs)
    this.#lasting = memberships.filter(
      ({ fromMs, untilMs = Number.POSITIVE_INFINITY }) =>
        untilMs >= knowledge.record.endedAtMs && isCalm(fromMs) && !hasStarts,
    )
    this.#areTogether = !hasStarts && new Set(memberships.map(({ node }) => node)).size === 1
  }

  areOwed({ key, attempts, ackedAtMs }: Known): boolean {
    const { rules, record } = this.#knowledge
    const firstMs = attempts[0]?.sentAtMs
    if (ackedAtMs === undefined || firstMs === undefined || !matches(this.#pattern, key)) return false
    if (ackedAtMs + rules.deliverWithinMs > record.endedAtMs) return false
    if (this.#knowledge.isUpsetFor(GONE_MS, ackedAtMs)) return false
    // Nodes of a mesh answer clients while they still look for each other.
    const knownAfterMs = this.#knowledge.hadFault(0, ['peer-links']) ? rules.settleMs : 0
    return this.#lasting.some(({ fromMs }) => fromMs + knownAfterMs < firstMs)
  }

  getOnce(message: Known): boolean {
    return this.#areTogether && this.#knowledge.isWithinWindow(message)
  }
}

function groupsOf(members: readonly MemberRecord[]): Map<string, MemberRecord[]> {
  const groups = new Map<string, MemberRecord[]>()
  for (const member of members) {
    const name = `${member.group} ${member.pattern}`
    groups.set(name, [...(groups.get(name) ?? []), member])
  }
  return groups
}
