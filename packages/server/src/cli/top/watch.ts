import { setTimeout as wait } from 'node:timers/promises'
import { Interrupt } from '../client/interrupt.js'
import { EXIT } from '../exit-codes.js'
import type { Terminal } from '../terminal.js'
import { screenOf } from './screen.js'
import { lookAt, type Snapshot } from './snapshot.js'
import type { ApiSource } from './source.js'

/** How often to look, and how to show it. */
export interface WatchOptions {
  readonly intervalMs: number
  readonly patternCount: number
  readonly isOnce: boolean
  readonly json: boolean
}

/** Moves to the top left corner, and clears what is below: without the flicker of a cleared screen. */
const HOME = '\u001b[H'
const CLEAR_LINE_END = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

/**
 * Shows a server until a signal, or once.
 *
 * @returns The exit code.
 * @throws {WebMQError} The server cannot be reached, or refuses.
 */
export async function watch(source: ApiSource, options: WatchOptions, terminal: Terminal): Promise<number> {
  using interrupt = new Interrupt()
  const { stdout } = terminal
  const { signal } = interrupt
  const isScreen = stdout.isTTY === true && !options.json && !options.isOnce
  const isRepeated = isScreen || (options.json && !options.isOnce)
  const closed = new AbortController()
  // The reader has closed the pipe, as `head` does.
  const close = () => closed.abort()
  stdout.on('error', close)
  const ended = AbortSignal.any([signal, closed.signal])
  let previous: Snapshot | undefined
  try {
    do {
      const snapshot = await lookAt(source, options.patternCount)
      if (ended.aborted) break
      if (options.json) stdout.write(`${JSON.stringify(snapshot)}\n`)
      else {
        const text = screenOf(snapshot, previous)
        stdout.write(isScreen ? HOME + text.replaceAll('\n', `${CLEAR_LINE_END}\n`) + CLEAR_BELOW : text)
      }
      previous = snapshot
      if (isRepeated) await wait(options.intervalMs, undefined, { signal: ended }).catch(() => undefined)
    } while (isRepeated && !ended.aborted)
    return EXIT.OK
  } finally {
    stdout.off('error', close)
  }
}
