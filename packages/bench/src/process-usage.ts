import { readFileSync } from 'node:fs'
import { RunError } from './exit-codes.js'

/** Linux shows times to user space in units of 10 ms, whatever its own tick is. */
const TICKS_PER_SECOND = 100
/** Fields 14 and 15 of `proc_pid_stat(5)`, counted from the third: what comes before may hold spaces. */
const USER_TICKS_INDEX = 11
const SYSTEM_TICKS_INDEX = 12

/** What a process uses, seen from outside: the same for Node and for anything else. */
export interface ProcessUsage {
  /** User and system time since its start, all threads, those that have ended too; in steps of 10 ms. */
  readonly cpuSeconds: number
  readonly rssBytes: number
  /** Largest so far. */
  readonly peakRssBytes: number
}

/**
 * Reads what a process uses now.
 * @throws {RunError} when there is no such process.
 */
export function processUsage(pid: number): ProcessUsage {
  const status = readProc(pid, 'status')
  return {
    cpuSeconds: cpuSecondsOf(readProc(pid, 'stat')),
    rssBytes: kibibytesOf(status, 'VmRSS') * 1_024,
    peakRssBytes: kibibytesOf(status, 'VmHWM') * 1_024,
  }
}

/** User and system seconds from the text of `/proc/<pid>/stat`. */
export function cpuSecondsOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[USER_TICKS_INDEX]) + Number(fields[SYSTEM_TICKS_INDEX])) / TICKS_PER_SECOND
}

function kibibytesOf(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0)
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch (cause) {
    throw new RunError(`process ${pid} has ended while it was measured`, { cause })
  }
}
