# A random walk: it knows nothing of studies, and prints how far it has come.
use strict;
use warnings;
use Getopt::Long;

my ($seed, $steps, $drift) = (0, 1000, 0);
GetOptions("seed=i" => \$seed, "steps=i" => \$steps, "drift=f" => \$drift) or exit 2;

srand($seed);
my $place = 0;
for my $step (1 .. $steps) {
    my $normal = sqrt(-2 * log(1 - rand())) * cos(6.283185307179586 * rand());
    $place += $drift + $normal;
}
printf "after %d steps: distance=%.3f\n", $steps, $place;
