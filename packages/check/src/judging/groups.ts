import { matches } from './keys.js'
import type { Knowledge, Known } from './known.js'
import type { MemberRecord } from './record.js'
import type { Report } from './violation.js'

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
    for (const message of knowledge.messages.values()) {
      const untilMs = isOwed(message, members, knowledge)
      const count = counts.get(message.id) ?? 0
      if (untilMs === undefined || count === 1) continue
      if (count === 0) report('task-lost', untilMs, name, `${message.id} of ${message.key} came to no member`)
      else report('task-twice', untilMs, name, `${message.id} of ${message.key} came to members ${count} times`)
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

function groupsOf(members: readonly MemberRecord[]): Map<string, MemberRecord[]> {
  const groups = new Map<string, MemberRecord[]>()
  for (const member of members) {
    const name = `${member.group} ${member.pattern}`
    groups.set(name, [...(groups.get(name) ?? []), member])
  }
  return groups
}
