"""The text of the simulation lab: the equations of Dey et al., and the flaws of the papers."""

from __future__ import annotations

INTRODUCTION = (
    "Here the truth is known. Draw rows, train a forest or a network, and see where its "
    "confidence differs from the truth: inside the data, and far outside, where there are no data "
    "and confidence should fall to the share of the more frequent class."
)
REGRESSION_INTRODUCTION = (
    "Here the truth is known. Draw rows, train a model that states a mean and one spread, and see "
    "what global and local recalibration (Torres et al.) bring back of the true distributions."
)
IMAGES_INTRODUCTION = (
    "A small convolutional network learns to tell circles from rectangles. Then the images shift: "
    "brighter or darker, half of one and half of the other, or stretched. See whether its "
    "confidence falls with them, and what its kernel density versions say (Dey et al., section "
    "3.2.1)."
)
IMAGES_EMPTY = """
**Run** will draw the images, train the network on seven tenths of them, build its kernel density
versions, and show for each of three shifts

* confidence along the shift, for every method,
* the images themselves, with what network and kernel density version say of each,
* error, calibration and log loss on ordinary images, each with its interval.

It takes about a minute with the default settings, and many minutes with 4,000 images of 50 pixels a
side. You can keep using the app meanwhile, and stop the run at any time.
"""
LOGARITHMS = " The model learns the logarithm of the outcome, as all outcomes are positive."
REGRESSION_EMPTY = """
**Run** will draw the rows, train the model on eight tenths of them, recalibrate it on a tenth, and
show on the last tenth

* true and estimated means and spreads of every row,
* the true surface of means and the estimated ones, where there are two inputs,
* where 95% intervals miss, before and after,
* distance to the truth, scores and coverage, each with its interval.

A line takes seconds, a network up to a few minutes. You can keep using the app meanwhile.
"""
REGRESSION_SIZES_LAST = (
    "{} runs, each with its own rows and its own model, with 100, 500 and 1,000 neighbours where "
    "there are as many calibration rows. The numbers of rows and neighbours in the settings are "
    "not used here."
)
EMPTY = """
**Run** will draw the rows, train the model on seven tenths of them, build its kernel density
versions, and show

* the papers' maps: the rows, the true posterior, and the posterior of each method,
* confidence against the distance from the data, for every method,
* error, distance to the truth, calibration and log loss, each with its interval,

with sliders for the kernel density version that take effect at once.

A forest takes seconds. A network takes about a minute with the default settings, and up to half an
hour for 10,000 rows and 1,000 units per layer. You can keep using the app meanwhile, and stop the
run at any time.
"""
UNITS = "1 is the distance of the farthest row; a polytope is a region of the model."
SETTINGS = r"""
The fit counts the rows of each class in each polytope of the model (a region with the same leaves,
or with the same active units). The settings that turn counts into a density and a posterior need no
new fit:

* **Exponent** $\gamma\log n$: how much other polytopes add to the counts. The kernel
  $\mathcal K(r,s)$ is the share of leaves or activation paths in common, and polytope $s$ counts
  in $r$ with weight $\mathcal K(r,s)^{\gamma\log n}$ (Dey et al., Eqs. 16 and 18). A large exponent
  adds nothing, and a polytope with one row is then sure of its class.
* **Floor** $b$: a constant added to every class's density, $\hat f_y=\tilde f_y+b/\log n$
  (Eq. 8). Where the densities are far smaller than the floor, the posterior is the prior (Prop. 2).
* **Variance floor** $\lambda$: added to the variance of each polytope's Gaussian (Eq. 15), in
  units in which the farthest row is at 1. A wider Gaussian reaches farther out. Most polytopes have
  one row, whose variance is 0. The papers add $10^{-6}$; **by data** it is the mean squared gap
  between neighbouring polytopes.
* **Inside the data**: the papers use only the class ratio of the polytope. **Class ratio alone**
  shows their fit: the output layer of a network belongs to the paths, and the exponent is chosen
  under the floor in use. **With the model** blends it with the model's own probability,
  $\mathrm{softmax}(a\log p+b\log g)$, with the weights of the lowest log loss on the held-out rows;
  $b$ is zero unless the class ratio lowers that loss by more than two standard errors.
  Densities, floor and prior do not change.

**From data** sets the floor to the density below which a given share of the held-out rows lie: the
share of ordinary rows that you accept to be called unknown. The constant that is added is lower, so
that only about a tenth of them falls back to the prior, unless rows made at 1.5 times the distance
of the farthest row need more. A row that falls back gets the class with the largest prior; classes
whose priors differ by at most 0.005 keep the order that the densities give them.
"""
SIZES_LAST = (
    "{} runs, each with its own rows and its own model: about a minute for forests up to 1,000 "
    "rows, many minutes for networks. The number of rows in the settings is not "
    "used here."
)
FLAWS = r"""
The papers contradict each other and themselves in places. The simulations here are as follows:

* **The floor.** The tables print $b=\exp(-10^{-7})$, which is 0.9999999: the preset *As printed*
  shows its effect. With it, and $\lambda=10^{-6}$, a polytope of one row among 10,000 in the plane
  falls back to the prior 0.0032 from its centre, nearer than the next row, so confidence collapses
  *inside* the data. The intended value is $b=\exp(-10^{7})$, which falls back at
  $\sqrt{2\lambda\cdot10^7}=4.47$, in any dimension: far too late at a distance of 2. The authors'
  own code uses other values for each experiment, one for results inside the data and another for
  results outside. kdcal sets the floor from held-out rows, **one setting for both**.
* **Gaussian XOR** is printed with the same means for both classes. Class 1 is at
  $\pm(0.5,0.5)$ here.
* **Spiral**: as printed the second arm is the first one after full turns, so the two coincide. Here
  it is the first one's point reflection.
* **N(0, 0.01)** states a variance: the noise has a standard deviation of 0.1.
* **Text and code.** The authors' code draws *Sinewave* at frequency 4 with the classes exchanged,
  and *Spiral* with a noise of 0.8. A switch draws both as it does.
* **"Within the region"**: rows outside the square are drawn again, class by class, and the true
  posterior is corrected for the share that is lost (22% of the outer ring of *Circle*). Trunk is
  not cut.
* **Spheres**: normalised Gaussian vectors. Normalised points of a cube are not uniform.
* **Logarithm**: natural, in $b/\log n$ and in $\gamma\log n$.
* **Division**: 70% to train and fit, 30% held out (90% and 10% in the earlier version of Dey et
  al.).
"""
