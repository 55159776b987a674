import { readFileSync } from 'node:fs'
import { RunError } from '../exit-codes.js'

/** Resources of a process, measured from outside: the same for Node and for other programs. */
export interface ProcessUsage {
  readonly rssBytes: number
  /** Largest so far. */
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
