package mutant

// Overlaid is true in the copy of this file that the overlay has.
const Overlaid = false
