import { EXIT } from '../exit-codes.js'
import { printable } from '../printable.js'
import { paint, type Terminal } from '../terminal.js'
import { examine } from './examine.js'
import type { Finding, FindingStatus } from './finding.js'
import type { DoctorTarget } from './target.js'

const LABELS: Readonly<Record<FindingStatus, readonly [string, 'green' | 'yellow' | 'red' | 'dim']>> = {
  ok: ['ok', 'green'],
  warn: ['warn', 'yellow'],
  fail: ['FAIL', 'red'],
  skip: ['-', 'dim'],
}

/** Examines a server and prints each finding when it is there. Returns the exit code: `FAILED` if a check failed. */
export async function diagnose(target: DoctorTarget, json: boolean, terminal: Terminal): Promise<number> {
  let hasFailed = false
  for await (const finding of examine(target)) {
    hasFailed ||= finding.status === 'fail'
    terminal.stdout.write(json ? `${JSON.stringify(finding)}\n` : lineOf(finding, terminal))
  }
  return hasFailed ? EXIT.FAILED : EXIT.OK
}

function lineOf({ check, status, text, advice }: Finding, { stdout, env }: Terminal): string {
  const [label, style] = LABELS[status]
  const head = `${paint(label.padEnd(5), style, stdout, env)} ${check.padEnd(12)} ${printable(text)}\n`
  return advice === undefined ? head : `${head}${' '.repeat(19)}${printable(advice)}\n`
}
