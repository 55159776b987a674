import { describe, expect, it } from 'vitest'
import { createProgress } from './progress.js'

function recorder(isTTY: boolean) {
  const writes: string[] = []
  return { isTTY, writes, write: (text: string) => writes.push(text) }
}

describe('progress', () => {
  it('redraws one line on a terminal and clears it at the end', () => {
    const output = recorder(true)
    const progress = createProgress(output, true)
    progress.phase('publishing')
    progress.update(0.5, 'half')
    progress.done()
    expect(output.writes.every((text) => text.startsWith('\r') && !text.includes('\n'))).toBe(true)
    expect(output.writes[1]).toContain(`${'█'.repeat(15)}${'░'.repeat(15)} half`)
    expect(output.writes.at(-1)).toBe('\r\x1b[K')
  })

  it('never writes more than fits on a line of the terminal', () => {
    const output = { ...recorder(true), columns: 40 }
    const progress = createProgress(output, true)
    progress.phase('publishing')
    progress.update(0.5, 'a very long explanation of what is going on')
    for (const text of output.writes) expect(text.replace('\r', '').replace('\x1b[K', '').length).toBeLessThan(40)
  })

  it('writes plain lines elsewhere, at most one each two seconds', () => {
    const output = recorder(false)
    let nowMs = 0
    const progress = createProgress(output, true, () => nowMs)
    progress.phase('publishing')
    for (; nowMs <= 5_000; nowMs += 100) progress.update(nowMs / 10_000, `${nowMs} ms`)
    progress.done()
    expect(output.writes).toEqual(['publishing\n', 'publishing: 2000 ms\n', 'publishing: 4000 ms\n'])
  })

  it('writes nothing but notes when it is off', () => {
    const output = recorder(true)
    const progress = createProgress(output, false)
    progress.phase('publishing')
    progress.update(0.5, 'half')
    progress.note('look at this')
    progress.done()
    expect(output.writes).toEqual(['look at this\n'])
  })
})
