import { readFileSync } from 'node:fs'
import path from 'node:path'

/** Behaviours of a case that are no failure: `NON-STRICT` and `INFORMATIONAL` are allowed by RFC 6455. */
const PASSED = new Set(['OK', 'NON-STRICT', 'INFORMATIONAL'])
const SKIPPED = new Set(['UNIMPLEMENTED'])

/**
 * Reads what `wstest` wrote.
 * @param {string} directory
 * @param {string} agent
 * @returns {{ passed: number, failed: number, skipped: number, byBehaviour: Map<string, number>, remarks: string[] }}
 *   `remarks`: one line per case that is not simply OK.
 */
export function readReport(directory, agent) {
  const { [agent]: cases = {} } = JSON.parse(readFileSync(path.join(directory, 'index.json'), 'utf8'))
  const report = { passed: 0, failed: 0, skipped: 0, byBehaviour: new Map(), remarks: [] }
  for (const [id, { behavior, behaviorClose }] of Object.entries(cases).sort(byNumber)) {
    // A connection that was not closed as it should is a failure of the case, whatever its messages did.
    const isFailed = behaviorClose === 'FAILED' || !(PASSED.has(behavior) || SKIPPED.has(behavior))
    if (isFailed) report.failed++
    else if (SKIPPED.has(behavior)) report.skipped++
    else report.passed++
    report.byBehaviour.set(behavior, (report.byBehaviour.get(behavior) ?? 0) + 1)
    const isRemarkable = behavior !== 'OK' || !['OK', 'INFORMATIONAL'].includes(behaviorClose)
    if (isRemarkable) report.remarks.push(`${isFailed ? 'FAIL' : '    '} ${id}: ${behavior}, close ${behaviorClose}`)
  }
  return report
}

function byNumber([one], [other]) {
  return one.localeCompare(other, 'en', { numeric: true })
}
