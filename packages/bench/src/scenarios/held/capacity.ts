import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { UsageError } from '../../exit-codes.js'
import { meminfoBytes } from '../../measure/kernel-memory.js'

/** What bounds the connections of a machine that holds both of their ends. */
export interface Capacity {
  readonly availableBytes: number
  /** Descriptors that the machine still has. */
  readonly freeDescriptors: number
}

/** Share of the available memory that a run takes. */
const MEMORY_SHARE = 0.75
/**
 * Both ends of a connection: 8.4 kB in the kernel, 1.5 kB in the server, 1 kB in the generator, and its share of an empty
 * server process of 110 MB with 18,600 connections. Measured.
 */
const BYTES_PER_CONNECTION = 17_000
const DESCRIPTORS_PER_CONNECTION = 2
/** For everybody else. */
const OTHER_DESCRIPTORS = 20_000
const MOST = 1_000_000
/** Of the descriptors of a server: it keeps a sixteenth back, and has some of its own. */
export const CONNECTIONS_SHARE = 0.93

/** The connections that a machine can hold, at most a million; thousands. */
export function connectionsThatFit({ availableBytes, freeDescriptors }: Capacity): number {
  const byMemory = (availableBytes * MEMORY_SHARE) / BYTES_PER_CONNECTION
  const byDescriptors = (freeDescriptors - OTHER_DESCRIPTORS) / DESCRIPTORS_PER_CONNECTION
  return Math.max(1_000, Math.floor(Math.min(MOST, byMemory, byDescriptors) / 1_000) * 1_000)
}

/** What this machine has now. @throws {UsageError} on a system that does not say it. */
export function readCapacity(): Capacity {
  const availableBytes = meminfoBytes('MemAvailable')
  if (availableBytes === null) throw new UsageError('this system does not say how much fits: give --connections')
  const [used, , most] = readFileSync('/proc/sys/fs/file-nr', 'utf8').trim().split(/\s+/).map(Number)
  return { availableBytes, freeDescriptors: Number(most) - Number(used) }
}

export interface DescriptorLimit {
  /** Descriptors that a process of this run may have. */
  readonly limit: number
  /** Why it is not what was wanted; `null`: it is. */
  readonly refusal: string | null
}

/** Raises the limit of this process, and so of those that it starts, where it is too low. */
export function raiseDescriptorLimit(wanted: number): DescriptorLimit {
  const before = hardLimit()
  if (before >= wanted) return { limit: before, refusal: null }
  const most = Number(readFileSync('/proc/sys/fs/nr_open', 'utf8'))
  const aim = Math.min(wanted, most)
  try {
    execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${aim}:${aim}`], { stdio: 'pipe' })
    return { limit: aim, refusal: aim < wanted ? `fs.nr_open is ${most}` : null }
  } catch (error) {
    const { stderr } = error as { readonly stderr?: Buffer }
    return { limit: before, refusal: stderr?.toString().trim() || String(error) }
  }
}

function hardLimit(): number {
  const text = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
  return text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text)
}
