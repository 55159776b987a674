import { isLoopback } from '../../identity/loopback.js'
import { EXIT } from '../exit-codes.js'
import { paint, printable, type Terminal } from '../terminal.js'
import type { Finding, FindingStatus } from './finding.js'
import { checkHealth, checkOpenFiles } from './health.js'
import { checkName, checkPort, isHere } from './network.js'
import { checkTalk } from './talk.js'
import type { DoctorTarget } from './target.js'
import { checkTls } from './tls.js'
import { checkClaims } from './token.js'
import { checkOrigin, checkUpgrade } from './upgrade.js'

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

/** Examines the way to a server from the name to the protocol. Ends at the first layer that does not work. */
async function* examine(target: DoctorTarget): AsyncGenerator<Finding> {
  const { isSecure, host, origin, token } = target
  if (token !== undefined) yield* checkClaims(token)
  const [name, addresses] = await checkName(target)
  yield name
  if (name.status === 'fail') return
  const port = await checkPort(target, addresses)
  yield port
  if (port.status === 'fail') return
  // Others could read a token that is sent over anything else.
  let isPrivate = isLoopback(host)
  if (isSecure) {
    const tls = await checkTls(target)
    yield* tls
    if (tls.some(({ check, status }) => check === 'tls' && status === 'fail')) return
    isPrivate = tls.every(({ status }) => status !== 'fail')
  }
  const { findings, session } = await checkUpgrade(target)
  yield* findings
  if (session !== undefined) {
    if (origin !== undefined) yield await checkOrigin(target, origin)
    yield* checkTalk(target, session, isPrivate)
  }
  yield* await checkHealth(target)
  if (isHere(addresses)) yield await checkOpenFiles(target)
}
