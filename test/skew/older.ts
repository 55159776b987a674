/** The state of the code that nodes of this one must work beside. docs/operations.md says when it moves. */
export const OLDER_COMMIT = '0689f0eef690c581e9dce88f8edd44d524f08d01'
