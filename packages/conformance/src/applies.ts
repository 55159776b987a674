import { describe, it } from 'vitest'

const notCreated = (): void => undefined

/** `describe` for what an adapter has. A suite that does not apply to it is not created, so it never counts as skipped. */
export const describeWhere = (applies: boolean) => (applies ? describe : notCreated)

/** As {@link describeWhere}, for one test. */
export const itWhere = (applies: boolean) => (applies ? it : notCreated)
