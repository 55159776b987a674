import { readFileSync } from 'node:fs'
import { RunError } from '../exit-codes.js'

/** Resources of a process, measured from outside: the same for Node and for other programs. */
export interface ProcessUsage {
  readonly rssBytes: number
  readonly peakRssBytes: number
}

/**
 * Reads the resources that a process uses now.
 * @throws {RunError} when there is no such process.
 */
export function processUsage(pid: number): ProcessUsage {
  const status = readStatus(pid)
  return { rssBytes: kibibytesOf(status, 'VmRSS') * 1_024, peakRssBytes: kibibytesOf(status, 'VmHWM') * 1_024 }
}

/** USER_HZ: ticks per second of CPU time in `/proc`, 100 on every current Linux. */
const TICKS_PER_SECOND = 100

/** User and system time of all threads of a process so far, without its children; `null`: it has ended. */
export function processCpuSeconds(pid: number): number | null {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return null
  }
  // proc(5): the program's name, in brackets, may contain anything, so fields count from behind it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

function kibibytesOf(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0)
}

function readStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch (cause) {
    throw new RunError(`process ${pid} has ended while it was measured`, { cause })
  }
}
