import { examineAcks } from './acks.js'
import { examineClientListener } from './client-listens.js'
import { examineConnections } from './connections.js'
import { examineGroups } from './groups.js'
import { Knowledge } from './known.js'
import { examineListener } from './listens.js'
import { examineRead } from './reads.js'
import type { RunRecord } from './record.js'
import type { Rules } from './rules.js'
import { examineTexts } from './texts.js'
import type { Report, RuleName, Violation } from './violation.js'

export { RULES, type RuleName, type Violation } from './violation.js'

/** One defect shows thousands of times; the first few of each rule are enough to find it. */
const MAX_PER_RULE = 20

/** Holds what a run has seen against what the system promises. Pure; the violations are in the order of their times. */
export function judge(record: RunRecord, rules: Rules): Violation[] {
  return examine(record, rules).violations
}

/** As {@link judge}, with the number of deliveries that were owed to listens. */
export function examine(record: RunRecord, rules: Rules): { violations: Violation[]; owedCount: number } {
  const violations: Violation[] = []
  const counts = new Map<RuleName, number>()
  const report: Report = (rule, atMs, owner, text) => {
    const count = (counts.get(rule) ?? 0) + 1
    counts.set(rule, count)
    if (count <= MAX_PER_RULE) violations.push({ rule, atMs, owner, text })
  }
  const knowledge = new Knowledge(record, rules, report)
  examineConnections(knowledge, report)
  examineAcks(knowledge, report)
  for (const listener of record.listeners) {
    const examine = listener.isOfClient ? examineClientListener : examineListener
    examine(listener, knowledge, report)
  }
  examineGroups(knowledge, report)
  for (const read of record.reads) examineRead(read, knowledge, report)
  examineTexts(knowledge, report)
  violations.sort((one, other) => one.atMs - other.atMs)
  return { violations, owedCount: knowledge.owedCount }
}
