import { spawn } from 'node:child_process'
import type { Command } from '../playing/faults.js'

export interface FaultCommandOptions {
  readonly maxMs: number
  /** Whether the installation may have lost its log afterwards. */
  readonly mayLoseLog: boolean
}

const MAX_OUTPUT_CHARS = 2_000

/** A line for the shell that does something to the installation, such as a restart of a node. It is killed after `maxMs`. */
export function faultCommand(line: string, { maxMs, mayLoseLog }: FaultCommandOptions): Command {
  return {
    title: line,
    touches: [
      'node',
      'broker',
      'broker-links',
      'peer-links',
      'client-links',
      ...(mayLoseLog ? (['broker-data'] as const) : []),
    ],
    run: () => runLine(line, maxMs),
  }
}

async function runLine(line: string, maxMs: number): Promise<void> {
  const child = spawn(line, { shell: true, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-MAX_OUTPUT_CHARS)
    })
  }
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    // Its group: what the shell has started ends, too.
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  }, maxMs)
  try {
    // Not `close`: what it leaves running may keep its output open.
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', resolve)
    })
    if (isLate) throw new Error(`it was killed after ${maxMs / 1_000} s; --fault-seconds gives it more\n${output}`)
    if (code !== 0) throw new Error(`it ended with exit code ${code}\n${output}`)
  } finally {
    clearTimeout(timer)
    child.stdout.destroy()
    child.stderr.destroy()
  }
}
