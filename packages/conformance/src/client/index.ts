export type { Case, Step } from './case.js'
export { type CaseOutcome, readCases, runCases } from './run-cases.js'
