import { describe, expect, it } from 'vitest'
import { grownCaches, kernelMemory, meminfoBytes } from './kernel-memory.js'

const SLABINFO = `slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
TCP                   20     26   2432   13    8 : tunables    0    0    0 : slabdata      2      3      0
filp                 950   1008    192   21    1 : tunables    0    0    0 : slabdata     48     48      0
`
const FILES: Readonly<Record<string, string>> = {
  '/proc/meminfo': 'MemTotal:       24683652 kB\nSlab:            1413596 kB\n',
  '/proc/net/sockstat': 'sockets: used 142\nTCP: inuse 25 orphan 0 tw 24521 alloc 27 mem 12\nUDP: inuse 0 mem 7\n',
  '/proc/slabinfo': SLABINFO,
}

describe('the memory of the kernel', () => {
  it('is in three files', () => {
    const memory = kernelMemory((path) => FILES[path] ?? null)
    expect(memory).toEqual({
      slabBytes: 1_413_596 * 1_024,
      socketBytes: 12 * 4_096,
      caches: { TCP: 3 * 8 * 4_096, filp: 48 * 4_096 },
    })
  })

  it('is partly unknown to a user who may not read all of them', () => {
    const memory = kernelMemory((path) => (path === '/proc/meminfo' ? (FILES[path] ?? null) : null))
    expect(memory).toEqual({ slabBytes: 1_413_596 * 1_024, socketBytes: 0, caches: {} })
    expect(meminfoBytes('MemAvailable', (path) => FILES[path] ?? null)).toBeNull()
  })

  it('names what has grown, the most first', () => {
    const of = (caches: Record<string, number>) => ({ slabBytes: 0, socketBytes: 0, caches })
    const grown = grownCaches(of({ TCP: 10, filp: 10, dentry: 9 }), of({ TCP: 15, filp: 40, dentry: 3, new: 1 }), 2)
    expect(grown).toEqual([
      ['filp', 30],
      ['TCP', 5],
    ])
  })

  it('is read from this machine', () => {
    expect(kernelMemory().slabBytes).toBeGreaterThan(1_000_000)
  })
})
