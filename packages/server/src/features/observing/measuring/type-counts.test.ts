import { describe, expect, it } from 'vitest'
import { TypeCounts } from './type-counts.js'

describe('TypeCounts', () => {
  it('list what is there for each reading', () => {
    const list = ['Socket']
    const counts = new TypeCounts(() => list)
    expect(counts.read(0)).toEqual({ count: 1, byType: { Socket: 1 } })
    list.push('Socket', 'Server')
    expect(counts.read(1)).toEqual({ count: 3, byType: { Socket: 2, Server: 1 } })
  })

  it('do not list thousands again within a minute', () => {
    const list = Array<string>(1_001).fill('Socket')
    const counts = new TypeCounts(() => list)
    expect(counts.read(0).count).toBe(1_001)
    list.length = 2
    expect(counts.read(59_999).count).toBe(1_001)
    expect(counts.read(60_000)).toEqual({ count: 2, byType: { Socket: 2 } })
  })
})
