import { readFileSync } from 'node:fs'

/** Memory that the kernel uses for the whole machine. */
export interface KernelMemory {
  /** Objects of the kernel: sockets, descriptors, entries of epoll. */
  readonly slabBytes: number
  /** What waits in TCP sockets. */
  readonly socketBytes: number
  /** The part of `slabBytes` by kind of object; empty where this user may not read it. */
  readonly caches: Readonly<Record<string, number>>
}

const KIB = 1_024
/** TCP counts its buffers in pages. */
const PAGE_BYTES = 4_096

/** Where the kernel says it; a test has files of its own. */
type KernelFiles = (path: string) => string | null

/** Reads it now. Cost: three small files. */
export function kernelMemory(read: KernelFiles = readText): KernelMemory {
  const tcpPages = /^TCP:.* mem (\d+)/m.exec(read('/proc/net/sockstat') ?? '')?.[1]
  return {
    slabBytes: meminfoBytes('Slab', read) ?? 0,
    socketBytes: Number(tcpPages ?? 0) * PAGE_BYTES,
    caches: cachesOf(read('/proc/slabinfo') ?? ''),
  }
}

/** One line of `/proc/meminfo`; `null` where the kernel has none. */
export function meminfoBytes(name: string, read: KernelFiles = readText): number | null {
  const text = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(read('/proc/meminfo') ?? '')?.[1]
  return text === undefined ? null : Number(text) * KIB
}

/** The kinds of objects that have grown most, in bytes. @param count At most so many. */
export function grownCaches(before: KernelMemory, after: KernelMemory, count: number): [name: string, bytes: number][] {
  return Object.entries(after.caches)
    .map(([name, bytes]): [string, number] => [name, bytes - (before.caches[name] ?? 0)])
    .filter(([, bytes]) => bytes > 0)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, count)
}

/** slabinfo(5): `name active_objs num_objs objsize objperslab pagesperslab … : slabdata active_slabs num_slabs …`. */
function cachesOf(text: string): Record<string, number> {
  const line = /^(\S+) +\d+ +\d+ +\d+ +\d+ +(\d+) .*: slabdata +\d+ +(\d+)/gm
  return Object.fromEntries(
    [...text.matchAll(line)].map(([, name = '', pages, slabs]) => [name, Number(pages) * Number(slabs) * PAGE_BYTES]),
  )
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null // Not on this system, or not for this user: the figures leave it out.
  }
}
