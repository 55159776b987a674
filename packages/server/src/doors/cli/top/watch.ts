import { once as next } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { Interrupt } from '../client/interrupt.js'
import { EXIT } from '../exit-codes.js'
import type { Terminal } from '../terminal.js'
import type { WatchFlags } from './flags.js'
import { screenOf } from './screen.js'
import { type ApiSource, lookAt, type Snapshot } from './snapshot.js'

/** Looks that the lines of rates go back. */
const MAX_LOOKS = 40

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
export async function watch(
  source: ApiSource,
  { interval, patterns, sort, once, json }: WatchFlags,
  terminal: Terminal,
): Promise<number> {
  const { stdout } = terminal
  using interrupt = new Interrupt(stdout)
  const { signal } = interrupt
  const isScreen = stdout.isTTY === true && !json && !once
  const isRepeated = isScreen || (json === true && !once)
  const looks: Snapshot[] = []
  do {
    const snapshot = await lookAt(source, patterns)
    if (signal.aborted) break
    const text = json ? `${JSON.stringify(snapshot)}\n` : screenOf(snapshot, looks, sort, terminal)
    const isTaken = stdout.write(isScreen ? HOME + text.replaceAll('\n', `${CLEAR_LINE_END}\n`) + CLEAR_BELOW : text)
    // A reader that stands still gets no further looks, which would wait in memory.
    if (!isTaken && isRepeated) await next(stdout, 'drain', { signal }).catch(() => undefined)
    if (looks.push(snapshot) > MAX_LOOKS) looks.shift()
    if (isRepeated) await wait(interval, undefined, { signal }).catch(() => undefined)
  } while (isRepeated && !signal.aborted)
  return EXIT.OK
}
