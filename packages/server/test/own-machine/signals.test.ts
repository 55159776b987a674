import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { freePort } from 'webmq-services'
import { inTurn } from '../../../../test/in-turn.js'
import { MachineNode } from './node.js'

const SIGNALS = ['SIGHUP', 'SIGTERM', 'SIGINT', 'SIGPIPE'] as const
const PHASES = [
  'importing',
  'reading configuration',
  'waiting for the broker',
  'binding',
  'serving',
  'draining',
] as const
type Signal = (typeof SIGNALS)[number]
type Phase = (typeof PHASES)[number]

const CELLS = PHASES.flatMap((phase) => SIGNALS.map((signal) => ({ signal, phase }) as const))

const folder = mkdtempSync(join(tmpdir(), 'webmq-signals-'))
afterAll(() => rmSync(folder, { recursive: true }))
let fileCount = 0

interface Started {
  readonly node: MachineNode
  /** Lets it go on. */
  goOn(): Promise<void> | void
}

/** A node that is in this phase until it may go on. */
async function startedIn(phase: Phase): Promise<Started> {
  const file = join(folder, `${fileCount++}`)
  switch (phase) {
    case 'importing':
      return await heldAt('doors/cli/main.js', file)
    case 'binding':
      return await heldAt('adapters/transports/native/transport.js', file)
    case 'reading configuration': {
      execFileSync('mkfifo', [file])
      const node = await MachineNode.start(['--config', file])
      // Opened as soon as the node reads it.
      const writer = await open(file, 'w')
      return {
        node,
        goOn: async () => {
          await writer.write('{}')
          await writer.close()
        },
      }
    }
    case 'waiting for the broker': {
      const node = await MachineNode.start(['--broker', `redis://127.0.0.1:${await freePort()}`])
      await vi.waitFor(() => expect(node.output).toContain('the broker is not reached yet'), { timeout: 60_000 })
      return { node, goOn: () => undefined }
    }
    case 'serving':
    case 'draining': {
      const node = await MachineNode.start(['--drain-delay', phase === 'draining' ? '2s' : '0'])
      await node.serves()
      if (phase === 'draining') {
        node.kill('SIGTERM')
        await node.isDraining()
      }
      return { node, goOn: () => undefined }
    }
  }
}

async function heldAt(module: string, mark: string): Promise<Started> {
  const node = await MachineNode.start(
    [],
    {},
    {
      NODE_OPTIONS: `--import=${new URL('held-module.mjs', import.meta.url).href}`,
      WEBMQ_TEST_HELD: module,
      WEBMQ_TEST_MARK: mark,
    },
  )
  await vi.waitFor(() => expect(existsSync(mark)).toBe(true), { timeout: 60_000 })
  return { node, goOn: () => rmSync(mark, { force: true }) }
}

/** Early, there is nothing to drain. A second signal to stop does not wait for the first one. */
const EXIT_CODES: Readonly<Record<Signal, { readonly once: number; readonly again: number }>> = {
  SIGTERM: { once: 0, again: 143 },
  SIGINT: { once: 0, again: 130 },
  SIGHUP: { once: 0, again: 0 },
  SIGPIPE: { once: 0, again: 0 },
}

describe('a signal ends no node that it should not end', { concurrent: true }, () => {
  it.for(inTurn(CELLS, 3))('$signal, $phase', async ({ signal, phase }) => {
    const { node, goOn } = await startedIn(phase)
    try {
      node.kill(signal)
      await goOn()
      const { once, again } = EXIT_CODES[signal]
      if (signal === 'SIGTERM' || signal === 'SIGINT' || phase === 'draining') {
        expect(await node.ended(), node.output).toBe(phase === 'draining' ? again : once)
        const hasServed = phase === 'serving' || phase === 'draining'
        if (!hasServed) expect(node.output).not.toContain('listens on')
        return
      }
      if (phase === 'waiting for the broker') expect([node.child.exitCode, node.child.signalCode]).toEqual([null, null])
      else expect([await node.serves(), node.child.signalCode]).toEqual([true, null])
      if (signal === 'SIGHUP') {
        await vi.waitFor(() => expect(node.output).toContain('the options were read again'))
      }
      node.kill('SIGTERM')
      expect(await node.ended(), node.output).toBe(0)
      expect(node.output).not.toContain('something keeps the process running')
    } finally {
      node.kill('SIGKILL')
    }
  })
})
