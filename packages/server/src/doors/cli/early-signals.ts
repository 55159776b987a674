import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'

/** Ctrl-C, the signal of supervisors, and a closed terminal. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type StopSignal = (typeof SIGNALS)[number]

/** A process ends with this plus the number of the signal that has ended it. */
export const SIGNALED = 128

const hadTerminal = hasTerminal()
/** Those that came before a command took them. `undefined`: nobody catches signals, or a command has taken them. */
let early: StopSignal[] | undefined
let receive: (signal: StopSignal) => void = remember

function listen(signal: StopSignal): void {
  receive(signal)
}

/**
 * Keeps signals for the command: one without a handler would end the process while it reads its modules. The program calls this
 * first; this file imports next to nothing.
 */
export function catchSignals(): void {
  early ??= []
  // A process may have several commands in turn.
  for (const signal of SIGNALS) process.off(signal, listen).on(signal, listen)
}

/** The first of each kind. Whoever asks again to stop does not wait for the command. */
function remember(signal: StopSignal): void {
  if (signal !== 'SIGHUP' && early?.some((one) => one !== 'SIGHUP')) endWith(signal)
  if (!early?.includes(signal)) early?.push(signal)
}

/** Gives the signals of the process to a command that runs until one of them; those that came before, at once. */
export function takeSignals(take: (signal: StopSignal) => void): void {
  if (early === undefined) catchSignals()
  receive = take
  for (const signal of early ?? []) take(signal)
  early = undefined
}

/** For all other commands: signals end the process, also one that has come already. */
export function leaveSignals(): void {
  for (const signal of SIGNALS) process.off(signal, listen)
  const signal = early?.[0]
  early = undefined
  if (signal !== undefined) endWith(signal)
}

/** Ends the process at once, as the signal alone would. */
export function endWith(signal: StopSignal): never {
  process.exit(SIGNALED + constants.signals[signal])
}

/** Whether a SIGHUP says that the terminal of the process is gone. On Windows it always means that. */
export function isTerminalClosed(): boolean {
  return process.platform === 'win32' || (hadTerminal && !hasTerminal())
}

/** Whether the process has a controlling terminal that is open. A service has none. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
