import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished, type TestContext, vi } from 'vitest'
import { inTurn } from '../../../../test/in-turn.js'
import { FAULTS, type Fault, Faults, PHASES, type Phase, TARGETS, type Target } from './faults.js'
import { endOf, MachineNode } from './node.js'

/** Each output that an operator owns, each way in which it fails, and each time at which that begins. */
const CELLS = FAULTS.flatMap((fault) =>
  TARGETS.flatMap((target) => PHASES.map((phase) => ({ fault, target, phase }) as const)),
)

/** What there is nothing to see of. */
function reasonAgainst(fault: Fault, target: Target, phase: Phase): string | undefined {
  if (target === 'pid' && phase !== 'start' && fault !== 'read-only' && fault !== 'gone folder')
    return 'the pid file is written at the start alone'
  return undefined
}

interface Expected {
  /** The node does not start, and says this. */
  readonly refusal?: RegExp
  /** Whose lines are counted as dropped or waiting. */
  readonly missing?: 'log' | 'audit'
  /** What the log says, as far as it is not what fails. */
  readonly says?: RegExp
}

function expected(fault: Fault, target: Target, phase: Phase): Expected {
  const isFileGone = fault === 'gone folder'
  switch (target) {
    case 'stderr':
      // An open file without a name takes everything.
      return isFileGone ? {} : { missing: 'log' }
    case 'stdout':
      // Later it is for what hooks print.
      if (phase !== 'start' || isFileGone) return {}
      return { missing: 'log', says: /the start message cannot be written/ }
    case 'audit':
      if (phase === 'start' && (isFileGone || fault === 'closed pipe' || fault === 'read-only'))
        return { refusal: /auditLog: E\w+/ }
      return { missing: 'audit', says: /"droppedCount":\d+,"msg":"lines of the audit log were lost"/ }
    case 'pid':
      if (phase === 'start') return { says: /the pid file cannot be written/ }
      return fault === 'read-only' ? { says: /the pid file cannot be removed/ } : {}
  }
}

const HOOKS = join(tmpdir(), `webmq-printing-hooks-${process.pid}.mjs`)
writeFileSync(HOOKS, "export default { connect: () => console.log('x'.repeat(100_000)) }\n")

const faults = new Faults()
afterAll(() => faults.clear())

async function outputOf(fault: Fault, target: Target, phase: Phase, { skip }: TestContext) {
  try {
    return await faults.output(fault, target, phase)
  } catch (error) {
    // A program that is missing, or may not do this here.
    if (error instanceof Error && ('status' in error || ('code' in error && error.code === 'ENOENT'))) {
      return skip(`${fault}, ${target}, ${phase}: ${error.message.trim()}`)
    }
    throw error
  }
}

describe('a node serves and stops as it should, and counts what is lost', { concurrent: true }, () => {
  it.for(inTurn(CELLS, 5))('$fault, $target, $phase', async ({ fault, target, phase }, context) => {
    const reason = reasonAgainst(fault, target, phase)
    if (reason !== undefined) context.skip(reason)
    const output = await outputOf(fault, target, phase, context)
    const { refusal, missing, says } = expected(fault, target, phase)
    if (phase === 'start') await output.fail()
    const args = [
      ...(target === 'audit' ? ['--audit-log', output.file] : []),
      ...(target === 'pid' ? ['--pid-file', output.file] : []),
      ...(target === 'stdout' ? ['--hooks', HOOKS] : []),
      ...(phase === 'drain' ? ['--drain-delay', '4s'] : []),
    ]
    const isStream = target === 'stderr' || target === 'stdout'
    const node = await MachineNode.start(args, isStream ? { [target]: output.descriptor } : {})
    try {
      if (refusal !== undefined) {
        expect(await node.ended()).toBe(2)
        expect(node.output).toMatch(refusal)
        return
      }
      expect([await node.serves(), node.child.exitCode], node.output).toEqual([true, null])
      if (phase === 'drain') {
        node.kill('SIGTERM')
        await node.isDraining()
      }
      if (phase !== 'start') await output.fail()
      // The audit log opens its file again.
      if (phase !== 'start' && target === 'audit' && (fault === 'read-only' || fault === 'gone folder')) {
        node.kill('SIGHUP')
        await vi.waitFor(() => expect(node.output).toContain('the audit log cannot be written'))
      }
      await node.causeLines()
      expect(await node.health(), 'the status of /health').toBe(200)
      if (missing !== undefined) {
        await vi.waitFor(async () => {
          const { dropped, waitingBytes } = await node.missing(missing)
          expect(dropped + waitingBytes).toBeGreaterThan(0)
        })
      }
      if (phase !== 'drain') node.kill('SIGTERM')
      expect(await node.ended(), node.output).toBe(0)
      if (says !== undefined) expect(node.output).toMatch(says)
    } finally {
      node.kill('SIGKILL')
    }
  })
})

const KEY = 'a-key-of-the-operators-of-this-server'

// Symptom: `sub` ended with 0 although nothing of what it got was kept. Cause: its own code replaced that of its output.
it.skipIf(process.platform !== 'linux')(
  'a command whose output a disk does not take says so, and ends with 1',
  async () => {
    const node = await MachineNode.start(['--api-key', KEY])
    const full = openSync('/dev/full', 'w')
    onTestFinished(() => {
      node.kill('SIGKILL')
      closeSync(full)
    })
    await node.serves()
    const url = `http://127.0.0.1:${node.port}`
    const commands = [
      ['config', 'schema'],
      ['sub', 'a', '--url', `ws://127.0.0.1:${node.port}/ws`, '--timeout', '30s'],
      ['top', url, '--api-key', KEY, '--json'],
    ]
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ key: 'a', payload: 1 })
    let error: unknown
    const publishing = setInterval(() => {
      fetch(`${url}/api/publish`, { method: 'POST', headers, body }).catch((reason: unknown) => {
        error = reason
      })
    }, 100)
    onTestFinished(() => clearInterval(publishing))
    const ends = await Promise.all(commands.map((args) => endOf(args, full)))
    clearInterval(publishing)
    expect(error).toBeUndefined()
    for (const end of ends)
      expect(end).toEqual([1, expect.stringContaining('standard output cannot be written: ENOSPC')])
  },
)

it.skipIf(process.platform === 'win32')('a node whose Unix socket is gone stops as it should', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'webmq-socket-'))
  const node = await MachineNode.start(['--host', `unix:${join(folder, 'socket')}`, '--insecure'])
  onTestFinished(() => node.kill('SIGKILL'))
  await vi.waitFor(() => expect(node.output).toContain('listens on'), { timeout: 60_000 })
  rmSync(folder, { recursive: true })
  node.kill('SIGTERM')
  expect(await node.ended(), node.output).toBe(0)
  expect(node.output).not.toContain('could not be stopped')
})
