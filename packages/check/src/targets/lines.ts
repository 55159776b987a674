import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { HeardEvent, Published } from './record.js'

/** A program that speaks lines of JSON. */
export interface LineProgram {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** Whether the command is a line for the shell; the arguments follow it. */
  readonly isShellLine?: boolean
}

/** A listener that is not live by then never will be. */
const LIVE_TIMEOUT_MS = 30_000
/** An answer that takes longer is unknown. */
const ANSWER_TIMEOUT_MS = 5_000

/** Starts a listener, and resolves when it says `{"what":"live"}`. Its other lines are events. It ends with its input. */
export async function listenByLines(
  program: LineProgram,
  heard: (event: HeardEvent) => void,
): Promise<{ close(): void }> {
  const child = start(program)
  let isLive = false
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill()
      reject(new Error(`${program.command} was not live after ${LIVE_TIMEOUT_MS / 1_000} s`))
    }, LIVE_TIMEOUT_MS)
    child.once('error', reject)
    child.once('exit', (code) => {
      const error = new Error(`the listener ${program.command} has ended: ${code}`)
      // Once it is live, nobody waits for it: the whole run is worth nothing then.
      if (isLive && code !== 0) throw error
      reject(error)
    })
    readLines(child, (line) => {
      const event = eventOf(line)
      if (event.what !== 'live') return heard(event)
      clearTimeout(timer)
      isLive = true
      resolve()
    })
  })
  return { close: () => child.stdin?.end() }
}

/** A program that publishes each line that it is given, and answers each with its outcome, in their order. */
export class LinePublisher {
  readonly #child: ChildProcess
  readonly #waiting: ((outcome: Published['outcome']) => void)[] = []

  constructor(program: LineProgram) {
    this.#child = start(program)
    this.#child.on('error', () => this.#giveUp())
    this.#child.on('exit', () => this.#giveUp())
    readLines(this.#child, (line) => {
      const { outcome } = JSON.parse(line) as { readonly outcome?: unknown }
      const known = (['acked', 'refused', 'unknown'] as const).find((each) => each === outcome)
      if (known === undefined) throw new Error(`${program.command} answered ${line.slice(0, 200)}`)
      this.#waiting.shift()?.(known)
    })
  }

  async publish(message: Omit<Published, 'outcome'>): Promise<Published['outcome']> {
    if (this.#child.exitCode !== null) throw new Error('the publisher has ended')
    return await new Promise((resolve) => {
      const timer = setTimeout(() => resolve('unknown'), ANSWER_TIMEOUT_MS)
      this.#waiting.push((outcome) => {
        clearTimeout(timer)
        resolve(outcome)
      })
      this.#child.stdin?.write(`${JSON.stringify(message)}\n`)
    })
  }

  stop(): void {
    this.#child.stdin?.end()
  }

  #giveUp(): void {
    for (const settle of this.#waiting.splice(0)) settle('unknown')
  }
}

function start({ command, args, env = process.env, isShellLine = false }: LineProgram): ChildProcess {
  const child = isShellLine
    ? spawn('/bin/sh', ['-c', `exec ${command} "$@"`, 'sh', ...args], { stdio: ['pipe', 'pipe', 'inherit'], env })
    : spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env })
  // What is written to a program that has ended: its end is what counts.
  child.stdin?.on('error', () => undefined)
  return child
}

function readLines(child: ChildProcess, read: (line: string) => void): void {
  if (child.stdout !== null) createInterface(child.stdout).on('line', read)
}

function eventOf(line: string): HeardEvent | { readonly what: 'live' } {
  const event = JSON.parse(line) as Readonly<Record<string, unknown>>
  const { what, channel, number, isRecovered } = event
  if (what === 'live') return { what }
  if (what === 'message' && typeof channel === 'string' && typeof number === 'number') return { what, channel, number }
  if (what === 'told' && typeof isRecovered === 'boolean') {
    return { what, isRecovered, ...(typeof channel === 'string' ? { channel } : {}) }
  }
  throw new Error(`not an event of a listener: ${line.slice(0, 200)}`)
}
