import { describe, expect, it } from 'vitest'
import { ResumePoint } from './resume-point.js'

describe('ResumePoint', () => {
  it('moves forward only, and treats a position of another epoch as new', () => {
    const resume = new ResumePoint('e:5')
    resume.advance('e:4')
    resume.advance(undefined)
    expect(resume.position).toBe('e:5')
    resume.advance('f:1')
    expect(resume.position).toBe('f:1')
  })

  it('reports new positions; unknown ones are always new', () => {
    const resume = new ResumePoint('e:5')
    expect(resume.advance('e:5')).toBe(false)
    expect(resume.advance(undefined)).toBe(true)
    expect(resume.advance('e:6')).toBe(true)
    expect(resume.advance('f:1')).toBe(true)
    expect(new ResumePoint().advance('e:1')).toBe(true)
  })

  it('continues after the last live message of the connection if it came after the listen was live', () => {
    const before = 'e:7'
    const resume = new ResumePoint('e:5')
    resume.live(before)
    expect(resume.at(before)).toBe('e:5')
    expect(resume.at('e:9')).toBe('e:9')
  })

  it('ignores a live message of another log, or an older one', () => {
    const resume = new ResumePoint('e:5')
    resume.live(undefined)
    expect(resume.at('f:9')).toBe('e:5')
    expect(resume.at('e:4')).toBe('e:5')
  })

  it('takes the position of load only if it is known to be ahead', () => {
    const unknown = new ResumePoint()
    unknown.catchUp('e:3')
    expect(unknown.position).toBeUndefined()
    const resume = new ResumePoint('e:5')
    resume.catchUp('e:4')
    resume.catchUp('f:9')
    expect(resume.position).toBe('e:5')
    resume.catchUp('e:8')
    expect(resume.position).toBe('e:8')
  })

  it('is a gap after its position was lost', () => {
    const resume = new ResumePoint('e:5')
    expect(resume.wasLive).toBe(false)
    resume.lose()
    expect(resume).toMatchObject({ position: undefined, wasLive: true })
  })
})
