import { describe, expect, it } from 'vitest'
import { ResumePoint } from './resume-point.js'

describe('ResumePoint', () => {
  it('moves forward only, and treats a position of another epoch as new', () => {
    const resume = new ResumePoint('e:5.AAAAA')
    resume.advance('e:4.AAAAA')
    resume.advance(undefined)
    expect(resume.position).toBe('e:5.AAAAA')
    resume.advance('f:1.AAAAA')
    expect(resume.position).toBe('f:1.AAAAA')
  })

  it('reports new positions; unknown ones are always new', () => {
    const resume = new ResumePoint('e:5.AAAAA')
    expect(resume.advance('e:5.AAAAA')).toBe(false)
    expect(resume.advance(undefined)).toBe(true)
    expect(resume.advance('e:6.AAAAA')).toBe(true)
    expect(resume.advance('f:1.AAAAA')).toBe(true)
    expect(new ResumePoint().advance('e:1.AAAAA')).toBe(true)
  })

  it('continues after the last live message of the connection if it came after the listen was live', () => {
    const before = 'e:7.AAAAA'
    const resume = new ResumePoint('e:5.AAAAA')
    resume.live(before)
    expect(resume.at(before)).toBe('e:5.AAAAA')
    expect(resume.at('e:9.AAAAA')).toBe('e:9.AAAAA')
  })

  it('ignores a live message of another log, or an older one', () => {
    const resume = new ResumePoint('e:5.AAAAA')
    resume.live(undefined)
    expect(resume.at('f:9.AAAAA')).toBe('e:5.AAAAA')
    expect(resume.at('e:4.AAAAA')).toBe('e:5.AAAAA')
  })

  it('takes the position of load only if it is known to be ahead', () => {
    const unknown = new ResumePoint()
    unknown.skip('e:3.AAAAA')
    expect(unknown.position).toBeUndefined()
    const resume = new ResumePoint('e:5.AAAAA')
    resume.skip('e:4.AAAAA')
    resume.skip('f:9.AAAAA')
    expect(resume.position).toBe('e:5.AAAAA')
    resume.skip('e:8.AAAAA')
    expect(resume.position).toBe('e:8.AAAAA')
  })

  it('is a gap after its position was lost', () => {
    const resume = new ResumePoint('e:5.AAAAA')
    expect(resume.wasLive).toBe(false)
    resume.lost()
    expect(resume).toMatchObject({ position: undefined, wasLive: true })
  })
})
