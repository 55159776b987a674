import { describe, expect, it } from 'vitest'
import { parsePosition } from './position.js'
import { ResumePoint } from './resume-point.js'

const at = (text: string) => parsePosition(text)

describe('ResumePoint', () => {
  it('goes forward only, and takes a position of another epoch for a new one', () => {
    const resume = new ResumePoint(at('e:5'))
    resume.advance(at('e:4'))
    resume.advance(undefined)
    expect(resume.position?.text).toBe('e:5')
    resume.advance(at('f:1'))
    expect(resume.position?.text).toBe('f:1')
  })

  it('says what is new: unknown positions always are', () => {
    const resume = new ResumePoint(at('e:5'))
    expect(resume.advance(at('e:5'))).toBe(false)
    expect(resume.advance(undefined)).toBe(true)
    expect(resume.advance(at('e:6'))).toBe(true)
    expect(resume.advance(at('f:1'))).toBe(true)
    expect(new ResumePoint().advance(at('e:1'))).toBe(true)
  })

  it('continues after the last live message of the connection, when that came after the listen was live', () => {
    const before = at('e:7')
    const resume = new ResumePoint(at('e:5'))
    resume.live(before)
    expect(resume.at(before)?.text).toBe('e:5')
    expect(resume.at(at('e:9'))?.text).toBe('e:9')
  })

  it('does not trust a live message of another log, or one that is older', () => {
    const resume = new ResumePoint(at('e:5'))
    resume.live(undefined)
    expect(resume.at(at('f:9'))?.text).toBe('e:5')
    expect(resume.at(at('e:4'))?.text).toBe('e:5')
  })

  it('takes what the app has loaded only when that is known to be ahead', () => {
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

  it('is a gap from then on, when its position was lost', () => {
    const resume = new ResumePoint(at('e:5'))
    expect(resume.wasLive).toBe(false)
    resume.lose()
    expect(resume).toMatchObject({ position: undefined, wasLive: true })
  })
})
