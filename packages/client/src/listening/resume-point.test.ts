import { describe, expect, it } from 'vitest'
import { parsePosition } from './position.js'
import { ResumePoint } from './resume-point.js'

const at = (text: string) => parsePosition(text)

describe('ResumePoint', () => {
  it('moves forward only, and treats a position of another epoch as new', () => {
    const resume = new ResumePoint(at('e:5'))
    resume.advance(at('e:4'))
    resume.advance(undefined)
    expect(resume.position?.text).toBe('e:5')
    resume.advance(at('f:1'))
    expect(resume.position?.text).toBe('f:1')
  })

  it('reports new positions; unknown ones are always new', () => {
    const resume = new ResumePoint(at('e:5'))
    expect(resume.advance(at('e:5'))).toBe(false)
    expect(resume.advance(undefined)).toBe(true)
    expect(resume.advance(at('e:6'))).toBe(true)
    expect(resume.advance(at('f:1'))).toBe(true)
    expect(new ResumePoint().advance(at('e:1'))).toBe(true)
  })

  it('continues after the last live message of the connection if it came after the listen was live', () => {
    const before = at('e:7')
    const resume = new ResumePoint(at('e:5'))
    resume.live(before)
    expect(resume.at(before)?.text).toBe('e:5')
    expect(resume.at(at('e:9'))?.text).toBe('e:9')
  })

  it('ignores a live message of another log, or an older one', () => {
    const resume = new ResumePoint(at('e:5'))
    resume.live(undefined)
    expect(resume.at(at('f:9'))?.text).toBe('e:5')
    expect(resume.at(at('e:4'))?.text).toBe('e:5')
  })

  it('takes the position of load only if it is known to be ahead', () => {
    const unknown = new ResumePoint()
    unknown.catchUp(at('e:3'))
    expect(unknown.position).toBeUndefined()
    const resume = new ResumePoint(at('e:5'))
    resume.catchUp(at('e:4'))
    resume.catchUp(at('f:9'))
    expect(resume.position?.text).toBe('e:5')
    resume.catchUp(at('e:8'))
    expect(resume.position?.text).toBe('e:8')
  })

  it('is a gap after its position was lost', () => {
    const resume = new ResumePoint(at('e:5'))
    expect(resume.wasLive).toBe(false)
    resume.lose()
    expect(resume).toMatchObject({ position: undefined, wasLive: true })
  })
})
