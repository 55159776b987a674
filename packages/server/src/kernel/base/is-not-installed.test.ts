import { expect, it } from 'vitest'
import { isNotInstalled } from './load-library.js'

it.each([
  ['by the code of Node', Object.assign(new Error('gone'), { code: 'ERR_MODULE_NOT_FOUND' }), 'pino', true],
  // Symptom: under Yarn's Plug'n'Play, a server without @opentelemetry/api did not start.
  ['by the name, when the error has no code', new Error('not provided'), 'a-package-that-nobody-has', true],
  ['and what is there may be broken', new SyntaxError('Unexpected token'), 'pino', false],
])('tells what is not installed: %s', (_way, error, name, expected) => {
  expect(isNotInstalled(error, name)).toBe(expected)
})
