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

  it('goes on in each partition, where the live messages since it was live have come', () => {
    const resume = new ResumePoint('0.a:5,1.b:5')
    resume.live('0.a:9,1.b:6')
    expect(resume.at('0.a:9,1.b:7')).toBe('0.a:5,1.b:7')
    expect(resume.at('0.a:9,1.b:6,2.c:3')).toBe('0.a:5,1.b:5')
    expect(resume.advance('1.b:4')).toBe(false)
    expect(resume.advance('1.b:6')).toBe(true)
    expect(resume.position).toBe('0.a:5,1.b:6')
  })

  it('is a gap after its position was lost', () => {
    const resume = new ResumePoint('e:5')
    expect(resume.wasLive).toBe(false)
    resume.lose()
    expect(resume).toMatchObject({ position: undefined, wasLive: true })
  })
})
